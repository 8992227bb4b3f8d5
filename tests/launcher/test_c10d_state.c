/* SPDX-License-Identifier: Apache-2.0 */
/* test_c10d_state.c - PyTorch's rendezvous states are read, and written so that it reads them. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/nodes/c10d/base64.h"
#include "launcher/nodes/c10d/pickle.h"
#include "launcher/nodes/c10d/python_datetime.h"
#include "launcher/nodes/c10d/state.h"
#include "tests/launcher/c10d_texts.h"

#define SECOND INT64_C(1000000)
#define FIRST_BEAT INT64_C(1795231513710030) /* 2026-11-21 03:25:13.710030 UTC */

static struct c10d_state s;

static void reads(const char *text)
{
    struct why why = { .text = "" };

    if (c10d_state_read(&s, text, strlen(text), &why) != C10D_READ)
        fail_msg("%s", why.text);
}

static void refuses(const char *text, const char *words)
{
    struct why why = { .text = "" };

    assert_int_equal(c10d_state_read(&s, text, strlen(text), &why), -1);
    if (!strstr(why.text, words))
        fail_msg("\"%s\" is not in \"%s\"", words, why.text);
}

/* Opcodes of our own making. */
static void refuses_pickle(const void *bytes, size_t size, const char *words)
{
    char *text = calloc(1, BASE64_LETTERS(size) + 1);

    assert_non_null(text);
    base64_encode(bytes, size, text);
    refuses(text, words);
    free(text);
}

#define REFUSES(bytes, words) refuses_pickle((bytes), sizeof(bytes) - 1, (words))

static struct c10d_node node(const char *addr, int64_t pid)
{
    return (struct c10d_node){ addr, pid, 0 };
}

static const struct c10d_member *member(const char *addr, int64_t pid)
{
    const struct c10d_node who = node(addr, pid);
    const struct c10d_member *found = c10d_find(&s, &who);

    assert_non_null(found);
    return found;
}

static void same_member(const struct c10d_member *a, const struct c10d_member *b)
{
    assert_int_equal(c10d_node_compare(&a->node, &b->node), 0);
    assert_int_equal(a->roles, b->roles);
    assert_int_equal(a->rank, b->rank);
    assert_true(a->heartbeat == b->heartbeat);
}

static void same_state(const struct c10d_state *a, const struct c10d_state *b)
{
    assert_int_equal(a->round, b->round);
    assert_int_equal(a->complete, b->complete);
    assert_int_equal(a->closed, b->closed);
    assert_int_equal(a->has_deadline, b->has_deadline);
    assert_true(a->deadline == b->deadline);
    assert_int_equal(a->naive, b->naive);
    assert_int_equal(a->no_spares, b->no_spares);
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++)
        same_member(&a->members[i], &b->members[i]);
    assert_int_equal(a->others_size, b->others_size);
    if (a->others_size > 0)
        assert_memory_equal(a->others, b->others, a->others_size);
}

/* What is written reads as the same. */
static void comes_back(void)
{
    struct c10d_state before = s;
    struct why why = { .text = "" };
    size_t size;
    char *text = c10d_state_write(&before, &size);

    assert_non_null(text);
    assert_int_equal(strlen(text), size);
    s = (struct c10d_state){ 0 };
    if (c10d_state_read(&s, text, size, &why) != C10D_READ)
        fail_msg("%s", why.text);
    same_state(&before, &s);
    free(text);
    c10d_state_free(&before);
}

static int forget_state(void **state)
{
    (void)state;
    c10d_state_free(&s);
    s = (struct c10d_state){ 0 };
    return 0;
}

/* ---- Parts -------------------------------------------------------------------- */

static void a_datetime_is_ten_bytes(void **state)
{
    static const unsigned char bytes[] = { 0x07, 0xea, 0x0b, 0x15, 0x03,
                                           0x19, 0x0d, 0x0a, 0xd5, 0x8e };
    unsigned char written[UTC_BYTES];
    int64_t us;

    (void)state;
    assert_int_equal(utc_read(bytes, &us), 0);
    assert_true(us == FIRST_BEAT);
    utc_write(us, written);
    assert_memory_equal(written, bytes, sizeof bytes);
}

/* Each day from the year 1 to 9999, by a calendar that only counts. */
static void every_day_comes_back(void **state)
{
    unsigned char bytes[UTC_BYTES], last[UTC_BYTES] = { 0 };
    int64_t us, days = 0;

    (void)state;
    for (int64_t day = INT64_C(-719162); day <= INT64_C(2932896); day++, days++) {
        utc_write(day * 86400 * SECOND + 1, bytes);
        assert_int_equal(utc_read(bytes, &us), 0);
        assert_true(us == day * 86400 * SECOND + 1);
        assert_true(memcmp(last, bytes, sizeof bytes) < 0); /* they are in order */
        memcpy(last, bytes, sizeof bytes);
    }
    assert_int_equal(bytes[0] << 8 | bytes[1], 9999);
    assert_int_equal(days, 3652059); /* datetime.max.toordinal() */
}

static void moments_that_python_cannot_say_become_the_nearest(void **state)
{
    static const unsigned char first[] = { 0, 1, 1, 1, 0, 0, 0, 0, 0, 0 };
    static const unsigned char last[] = { 0x27, 0x0f, 12, 31, 23, 59, 59, 0x0f, 0x42, 0x3f };
    unsigned char bytes[UTC_BYTES];

    (void)state;
    utc_write(INT64_MIN, bytes);
    assert_memory_equal(bytes, first, sizeof first);
    utc_write(INT64_MAX, bytes);
    assert_memory_equal(bytes, last, sizeof last);
}

static void impossible_moments_are_refused(void **state)
{
    static const unsigned char no[][UTC_BYTES] = {
        { 7, 0xea, 0, 1, 0, 0, 0, 0, 0, 0 },  { 7, 0xea, 13, 1, 0, 0, 0, 0, 0, 0 },
        { 7, 0xea, 2, 29, 0, 0, 0, 0, 0, 0 }, { 7, 0xea, 1, 0, 0, 0, 0, 0, 0, 0 },
        { 7, 0xea, 1, 1, 24, 0, 0, 0, 0, 0 }, { 7, 0xea, 1, 1, 0, 60, 0, 0, 0, 0 },
        { 7, 0xea, 1, 1, 0, 0, 60, 0, 0, 0 }, { 7, 0xea, 1, 1, 0, 0, 0, 0x0f, 0x42, 0x40 },
        { 0, 0, 1, 1, 0, 0, 0, 0, 0, 0 },     { 0x27, 0x10, 1, 1, 0, 0, 0, 0, 0, 0 },
    };
    static const unsigned char fold[] = { 7, 0xea, 0x8b, 21, 3, 25, 13, 0x0a, 0xd5, 0x8e };
    int64_t us;

    (void)state;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_int_equal(utc_read(no[i], &us), -1);
    assert_int_equal(utc_read(fold, &us), 0);
    assert_true(us == FIRST_BEAT);
}

static void base64_has_one_text_for_one_row_of_bytes(void **state)
{
    static const char *const no[] = { "A",    "AA",   "AAA",      "AA=A",  "====", "A===",
                                      "AB==", "AAB=", "AA==AAAA", "AA\nA", "AA-_", "AAAA=" };
    unsigned char bytes[8];
    char text[9] = "";

    (void)state;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_int_equal(base64_decode(no[i], strlen(no[i]), bytes), -1);
    assert_int_equal(base64_decode("", 0, bytes), 0);
    assert_int_equal(base64_decode("+/8=", 4, bytes), 2);
    assert_int_equal(bytes[0] << 8 | bytes[1], 0xfbff);
    base64_encode((const unsigned char *)"canim", 5, text);
    assert_string_equal(text, "Y2FuaW0=");
    base64_encode((const unsigned char *)"canimada", 8, (char[13]){ 0 });
    assert_int_equal(base64_decode("Y2FuaW0=", 8, bytes), 5);
    assert_memory_equal(bytes, "canim", 5);
}

static int order(const char *a, const char *b)
{
    const struct c10d_node x = node(a, 1), y = node(b, 1);

    assert_int_equal(c10d_node_compare(&x, &y), -c10d_node_compare(&y, &x));
    return c10d_node_compare(&x, &y);
}

static void nodes_are_the_same_by_addr_pid_and_local_id(void **state)
{
    const struct c10d_node a = { "a", 2, 1 }, pid = { "a", 10, 0 }, local = { "a", 2, 2 };

    (void)state;
    assert_true(order("a", "b") < 0);
    assert_true(order("node10", "node2") < 0);
    assert_true(order("z", "\xc3\xa4") < 0); /* code points: U+00E4 is after z */
    assert_true(order("\xef\xbf\xbd", "\xf0\x9f\x98\x80") < 0);
    assert_true(order("a", "ab") < 0);
    assert_true(c10d_node_compare(&a, &pid) < 0);
    assert_true(c10d_node_compare(&a, &local) < 0);
    assert_int_equal(c10d_node_compare(&a, &a), 0);
}

static void node2_comes_naturally_before_node10(void **state)
{
    static const char *const in_order[] = { "10.0.0.9",
                                            "10.0.0.10",
                                            "node",
                                            "node-b",
                                            "node2",
                                            "node2-9",
                                            "node2-10",
                                            "node10",
                                            "node10a",
                                            "node99999999999999999999",
                                            "node100000000000000000000" };

    (void)state;
    for (size_t i = 0; i + 1 < sizeof in_order / sizeof *in_order; i++) {
        const struct c10d_node a = node(in_order[i], 9), b = node(in_order[i + 1], 1);

        if (c10d_node_natural(&a, &b) >= 0 || c10d_node_natural(&b, &a) <= 0)
            fail_msg("%s, %s", in_order[i], in_order[i + 1]);
    }
}

static void equal_numbers_of_different_length_are_no_tie(void **state)
{
    const struct c10d_node a = node("n02", 1), b = node("n2", 1), c = node("n2", 2);

    (void)state;
    assert_true(c10d_node_natural(&a, &b) < 0);
    assert_true(c10d_node_natural(&b, &a) > 0);
    assert_true(c10d_node_natural(&b, &c) < 0);
    assert_int_equal(c10d_node_natural(&b, &b), 0);
}

/* ---- Reading ------------------------------------------------------------------ */

static void the_sentinel_is_no_state(void **state)
{
    struct why why;

    (void)state;
    reads(text_three_roles);
    assert_int_equal(c10d_state_read(&s, "Y2FuaW1hZGFt", 12, &why), C10D_NONE);
    assert_int_equal(s.round, 0);
    assert_int_equal(s.count, 0);
    assert_int_equal(s.no_spares, 0);
    refuses("", "protocol");
}

static void a_new_state_is_read(void **state)
{
    (void)state;
    reads(text_new);
    assert_int_equal(s.round, 0);
    assert_int_equal(s.complete, 0);
    assert_int_equal(s.closed, 0);
    assert_int_equal(s.has_deadline, 0);
    assert_int_equal(s.no_spares, 0);
    assert_int_equal(s.count, 0);
    assert_int_equal(s.others_size, 0);
    comes_back();
}

static void two_nodes_have_ranks_and_heartbeats(void **state)
{
    (void)state;
    reads(text_two);
    assert_int_equal(s.complete, 1);
    assert_int_equal(s.count, 2);
    assert_int_equal(member("node0.example", 4000)->roles, C10D_PARTICIPANT | C10D_BEATS);
    assert_int_equal(member("node0.example", 4000)->rank, 0);
    assert_int_equal(member("node1.example", 4001)->rank, 1);
    assert_true(member("node0.example", 4000)->heartbeat == FIRST_BEAT);
    assert_true(member("node1.example", 4001)->heartbeat == FIRST_BEAT + SECOND);
    assert_int_equal(s.naive, 0);
    comes_back();
}

static void a_node_has_the_role_of_its_list(void **state)
{
    (void)state;
    reads(text_three_roles);
    assert_int_equal(s.round, 7);
    assert_int_equal(member("node0.example", 4000)->roles, C10D_PARTICIPANT | C10D_BEATS);
    assert_int_equal(member("node1.example", 4001)->roles, C10D_WAITING | C10D_BEATS);
    assert_int_equal(member("node2.example", 4002)->roles, C10D_SPARE | C10D_BEATS);
    comes_back();
}

static void times_without_a_zone_are_written_without_one(void **state)
{
    (void)state;
    reads(text_naive);
    assert_int_equal(s.naive, 1);
    assert_true(s.has_deadline && s.deadline == FIRST_BEAT + 30 * SECOND);
    comes_back();
    reads(text_new); /* says nothing of zones: the job's are still naive */
    assert_int_equal(s.naive, 1);
    reads(text_one);
    assert_int_equal(s.naive, 0);
    reads(text_new);
    assert_int_equal(s.naive, 0);
}

static void a_state_without_spares_is_written_without_them(void **state)
{
    (void)state;
    reads(text_no_redundancy_list);
    assert_int_equal(s.no_spares, 1);
    comes_back();
    reads(text_one);
    assert_int_equal(s.no_spares, 0);
}

static int others_contain(const char *word)
{
    return memmem(s.others, s.others_size, word, strlen(word)) != NULL;
}

static void unknown_attributes_are_carried_over(void **state)
{
    (void)state;
    reads(text_unknown_attributes);
    assert_int_equal(s.closed, 1);
    assert_int_equal(s.count, 2);
    assert_true(others_contain("failures") && others_contain("label") && others_contain("weights")
                && others_contain("since") && others_contain("same"));
    assert_true(others_contain("sp\xc3\xa4\xc5\xa5"));
    assert_true(others_contain("G\x3f\xe0")); /* 0.5 */
    comes_back();
}

static void protocol_5_is_the_same(void **state)
{
    struct c10d_state four;

    (void)state;
    reads(text_one);
    four = s;
    s = (struct c10d_state){ 0 };
    reads(text_protocol_5);
    same_state(&four, &s);
    c10d_state_free(&four);
}

static void long_names_and_large_pids_are_read(void **state)
{
    (void)state;
    reads(text_long_name);
    assert_int_equal(s.count, 1);
    assert_int_equal(strlen(s.members[0].node.addr), 300);
    assert_int_equal(s.members[0].node.pid, 4194303);
    comes_back();
}

static void a_name_longer_than_any_is_refused(void **state)
{
    struct c10d_member *added;
    char addr[C10D_ADDR_MOST + 2] = "";
    const struct c10d_node who = { addr, 1, 0 };
    struct why why = { .text = "" };
    size_t size;
    char *text;

    (void)state;
    memset(addr, 'a', C10D_ADDR_MOST);
    assert_non_null(added = c10d_member(&s, &who));
    added->roles = C10D_WAITING;
    comes_back();
    addr[C10D_ADDR_MOST] = 'a';
    assert_non_null(added = c10d_member(&s, &who));
    added->roles = C10D_WAITING;
    assert_non_null(text = c10d_state_write(&s, &size));
    assert_int_equal(c10d_state_read(&s, text, size, &why), -1);
    assert_non_null(strstr(why.text, "addr is longer than any"));
    free(text);
}

/* Memo numbers beyond a byte, and more room than any first guess. */
static void ten_thousand_nodes_come_back(void **state)
{
    char addr[32];

    (void)state;
    for (int i = 0; i < 10000; i++) {
        struct c10d_node who = { addr, INT64_C(1) << (i % 63), -i };
        struct c10d_member *added;

        snprintf(addr, sizeof addr, "node%d", i);
        assert_non_null(added = c10d_member(&s, &who));
        added->roles = i % 3 == 0   ? C10D_PARTICIPANT | C10D_BEATS
                       : i % 3 == 1 ? C10D_WAITING
                                    : C10D_SPARE;
        added->rank = i % 3 == 0 ? i : 0;
        added->heartbeat = i % 3 == 0 ? FIRST_BEAT + i : 0;
    }
    comes_back();
    assert_int_equal(s.count, 10000);
    assert_int_equal(c10d_count(&s, C10D_PARTICIPANT), 3334);
    assert_int_equal(c10d_count(&s, C10D_WAITING | C10D_SPARE), 6666);
}

static void members_are_found_whatever_the_order_of_their_coming(void **state)
{
    const struct c10d_node b = node("b", 1), a = node("a", 1), c = node("c", 1);

    (void)state;
    assert_non_null(c10d_member(&s, &b));
    assert_non_null(c10d_member(&s, &a));
    assert_non_null(c10d_member(&s, &c));
    assert_ptr_equal(c10d_member(&s, &a), c10d_find(&s, &a));
    assert_int_equal(s.count, 3);
    assert_string_equal(s.members[1].node.addr, "b");
    c10d_find(&s, &b)->roles = C10D_SPARE;
    assert_true(c10d_is(&s, &b, C10D_SPARE | C10D_WAITING));
    assert_false(c10d_is(&s, &b, C10D_WAITING));
    c10d_settle(&s);
    assert_int_equal(s.count, 1);
    assert_null(c10d_find(&s, &a));
}

/* ---- Refusing ----------------------------------------------------------------- */

#define CLASS_OF(name) \
    "\x8c\x37torch.distributed.elastic.rendezvous.dynamic_rendezvous\x8c" name "\x93"
#define STATE CLASS_OF("\x10_RendezvousState") ")\x81"
#define NODE CLASS_OF("\x09_NodeDesc") ")\x81"
#define NUMBERS            \
    "\x8c\x05round"        \
    "K\0"                  \
    "\x8c\x08"             \
    "complete\x89\x8c\x08" \
    "deadlineN\x8c\x06"    \
    "closed\x89"
#define LISTS "\x8c\x09wait_list\x8f\x8c\x0flast_heartbeats}"
#define A_NODE          \
    NODE "}(\x8c\x04"   \
         "addr\x8c\x01" \
         "a\x8c\x03pidK\1\x8c\x08local_idK\0ub"

static void globals_are_never_run(void **state)
{
    (void)state;
    REFUSES("\x80\4\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.", "os.system");
    REFUSES("\x80\4\x8c\x08"
            "builtins\x8c\x04"
            "eval\x93\x8c\x01"
            "1\x85R.",
            "builtins.eval");
    REFUSES("\x80\4\x8c\x08"
            "datetime\x8c\x04time\x93.",
            "datetime.time");
    REFUSES("\x80\4\x8c\x03\x1b[m\x8c\x01x\x93.", "?[m.x");
    REFUSES("\x80\4"
            "cos\nsystem\n(S'true'\ntR.",
            "0x63"); /* GLOBAL as protocol 0 has it */
    REFUSES("\x80\4" CLASS_OF("\x10_RendezvousState") ")R.", "call");
    REFUSES("\x80\4\x8c\x08"
            "datetime\x8c\x08"
            "datetime\x93)\x81.",
            "class");
}

static void every_other_opcode_is_refused(void **state)
{
    static const char known[] = "N)KMJXCBG}](uesatbRhj.";
    char pickle[] = "\x80\4?........";
    char words[8];

    (void)state;
    for (int code = 1; code < 0x80; code++) {
        if (strchr(known, code))
            continue;
        pickle[2] = (char)code;
        snprintf(words, sizeof words, "0x%02x", code);
        REFUSES(pickle, words);
    }
    for (int code = 0x92; code <= 0x98; code++) {
        if (code == 0x93 || code == 0x94 || code == 0x95)
            continue;
        pickle[2] = (char)code;
        snprintf(words, sizeof words, "0x%02x", code);
        REFUSES(pickle, words);
    }
}

static void what_is_cut_is_refused(void **state)
{
    size_t size;
    unsigned char bytes[1024];
    char text[2048];

    (void)state;
    size = (size_t)base64_decode(text_three_roles, strlen(text_three_roles), bytes);
    for (size_t i = 0; i < size; i++) {
        memset(text, 0, sizeof text);
        base64_encode(bytes, i, text);
        refuses(text, "rendezvous state");
    }
    bytes[size] = '.'; /* and what goes on behind its end */
    base64_encode(bytes, size + 1, text);
    refuses(text, "too early");
}

static void a_broken_machine_is_refused(void **state)
{
    (void)state;
    REFUSES("\x80\4.", "too early");
    REFUSES("\x80\4NN.", "too early");
    REFUSES("\x80\4(.", "too early");
    REFUSES("\x80\4h\0.", "not remembered");
    REFUSES("\x80\4N\x94j\1\0\0\0.", "not remembered");
    REFUSES("\x80\4(\x94.", "nothing to remember");
    REFUSES("\x80\4}Ns.", "an item for nothing");
    REFUSES("\x80\4}(Ns.", "an item for nothing");
    REFUSES("\x80\4}(Nu.", "items for nothing");
    REFUSES("\x80\4(u.", "items for nothing");
    REFUSES("\x80\4Nu.", "items for nothing");
    REFUSES("\x80\4\x8f(NNu.", "items for nothing");
    REFUSES("\x80\4N\x86.", "tuple");
    REFUSES("\x80\4(N\x86.", "tuple");
    REFUSES("\x80\4Nt.", "tuple");
    REFUSES("\x80\4N)\x81.", "class");
    REFUSES("\x80\4}}b.", "attributes");
    REFUSES("\x80\4\x93.", "global");
    REFUSES("\x80\4\x8c\x02\xc3\x28.", "UTF-8");
    REFUSES("\x80\4\x8c\x02\xc0\x80.", "UTF-8");
    REFUSES("\x80\4\x8c\x01\xc3.", "UTF-8");
    REFUSES("\x80\4X\xff\xff\xff\xff.", "cut");
    REFUSES("\x80\3N.", "protocol 3");
    REFUSES("(dp0\n.", "protocol");
    refuses("!!!!", "base64");
}

static void what_is_no_state_is_refused(void **state)
{
    (void)state;
    REFUSES("\x80\4N.", "_RendezvousState");
    REFUSES("\x80\4" STATE ".", "_RendezvousState");
    REFUSES("\x80\4" STATE "}b.", "has no round");
    REFUSES("\x80\4" STATE "}(" NUMBERS "ub.", "has no participants");
    REFUSES("\x80\4" STATE "}(" NUMBERS NUMBERS "ub.", "twice");
    REFUSES("\x80\4" STATE "}(\x8c\x05roundNub.", "round");
    REFUSES("\x80\4" STATE "}(\x8c\x05roundJ\xff\xff\xff\xffub.", "round");
    REFUSES("\x80\4" STATE "}(\x8c\x05round\x8a\5\0\0\0\0\1ub.", "round");
    REFUSES("\x80\4" STATE "}(\x8c\x08"
            "completeK\1ub.",
            "complete");
    REFUSES("\x80\4" STATE "}(\x8c\x08"
            "deadlineK\1ub.",
            "datetime");
    REFUSES("\x80\4" STATE "}(\x8c\x0cparticipants\x8fub.", "no dict");
    REFUSES("\x80\4" STATE "}(\x8c\x09wait_list}ub.", "no set");
    REFUSES("\x80\4" STATE "}(K\1K\1ub.", "name");
    REFUSES("\x80\4" STATE "}(\x8c\x09wait_list\x8f(N\x90ub.", "addr, pid");
    REFUSES("\x80\4" STATE "}(\x8c\x09wait_list\x8f(" NODE "}b\x90ub.", "addr, pid");
    REFUSES("\x80\4" STATE "}(\x8c\x0cparticipants}" A_NODE "Nsub.", "rank");
    REFUSES("\x80\4" STATE "}(" NUMBERS LISTS "\x8c\x0cparticipants}(" A_NODE "K\0" A_NODE
            "K\1uub.",
            "twice in the same list");
}

static void values_within_themselves_are_refused(void **state)
{
    /* deep = {}; deep[1] = deep */
    REFUSES("\x80\4" STATE "}(\x8c\x04"
            "deep}\x94K\1h\0sub.",
            "deep cannot be carried over");
    (void)state;
}

/* 2^40 values of 80 bytes of pickle. */
static void values_that_double_are_refused(void **state)
{
    char pickle[512] = "\x80\4" STATE "}(\x8c\x04wide}";
    size_t size = sizeof("\x80\4" STATE "}(\x8c\x04wide") - 1;

    (void)state;
    pickle[size++] = ')';
    for (int i = 0; i < 40; i++) {
        memcpy(pickle + size, "\x94h?\x86", 4);
        pickle[size + 2] = (char)i;
        size += 4;
    }
    memcpy(pickle + size, "ub.", 3);
    refuses_pickle(pickle, size + 3, "wide cannot be carried over");
}

static void too_many_nodes_are_refused(void **state)
{
    const size_t nodes = C10D_NODES_MOST + 1;
    static const char begin[] = "\x80\4" STATE "}(\x8c\x09wait_list\x8f(" A_NODE "\x94";
    char *pickle = malloc(sizeof begin + 2 * nodes + 8);
    size_t size = sizeof begin - 1;

    (void)state;
    assert_non_null(pickle);
    memcpy(pickle, begin, size);
    for (size_t i = 1; i < nodes; i++, size += 2)
        memcpy(pickle + size, "h\0", 2);
    memcpy(pickle + size, "\x90ub.", 4);
    refuses_pickle(pickle, size + 4, "more than 65536 nodes");
    free(pickle);
}

static void memory_has_a_bound(void **state)
{
    const size_t size = 16 << 20;
    char *pickle = malloc(size);

    (void)state;
    assert_non_null(pickle);
    memcpy(pickle, "\x80\4", 2);
    memset(pickle + 2, '}', size - 2);
    refuses_pickle(pickle, size, "more than 128 MiB");
    memset(pickle + 2, '(', size - 2);
    refuses_pickle(pickle, size, "too many values");
    memset(pickle + 2, 0x94, size - 2);
    pickle[2] = 'N';
    refuses_pickle(pickle, size, "too many values");
    free(pickle);
}

static void mixed_times_are_refused(void **state)
{
    (void)state;
    REFUSES("\x80\4" STATE "}(" NUMBERS "\x8c\x0cparticipants}\x8c\x09wait_list\x8f"
            "\x8c\x0flast_heartbeats}(" A_NODE "\x8c\x08"
            "datetime\x8c\x08"
            "datetime\x93"
            "C\x0a\x07\xea\x0b\x15\x03\x19\x0d\x0a\xd5\x8e\x85R" NODE "}(\x8c\x04"
            "addr\x8c\x01"
            "b\x8c\x03pidK\1\x8c\x08local_idK\0ub"
            "\x8c\x08"
            "datetime\x8c\x08"
            "datetime\x93"
            "C\x0a\x07\xea\x0b\x15\x03\x19\x0d\x0a\xd5\x8e"
            "\x8c\x08"
            "datetime\x8c\x08timezone\x93\x8c\x08"
            "datetime\x8c\x09timedelta\x93"
            "K\0K\0K\0\x87R\x85R\x86Ruub.",
            "time zone and some have none");
}

static void only_utc_is_a_time_zone(void **state)
{
    (void)state;
    REFUSES("\x80\4" STATE "}(\x8c\x08"
            "deadline\x8c\x08"
            "datetime\x8c\x08"
            "datetime\x93"
            "C\x0a\x07\xea\x0b\x15\x03\x19\x0d\x0a\xd5\x8e"
            "\x8c\x08"
            "datetime\x8c\x08timezone\x93\x8c\x08"
            "datetime\x8c\x09timedelta\x93"
            "K\0M\x10\x0eK\0\x87R\x85R\x86Rub.",
            "not UTC");
}

static void a_refused_text_leaves_the_state_as_it_was(void **state)
{
    (void)state;
    reads(text_three_roles);
    REFUSES("\x80\4" STATE "}(" NUMBERS "ub.", "participants");
    assert_int_equal(s.round, 7);
    assert_int_equal(s.count, 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget_state)
    const struct CMUnitTest tests[] = {
        TEST(a_datetime_is_ten_bytes),
        TEST(every_day_comes_back),
        TEST(moments_that_python_cannot_say_become_the_nearest),
        TEST(impossible_moments_are_refused),
        TEST(base64_has_one_text_for_one_row_of_bytes),
        TEST(nodes_are_the_same_by_addr_pid_and_local_id),
        TEST(node2_comes_naturally_before_node10),
        TEST(equal_numbers_of_different_length_are_no_tie),
        TEST(the_sentinel_is_no_state),
        TEST(a_new_state_is_read),
        TEST(two_nodes_have_ranks_and_heartbeats),
        TEST(a_node_has_the_role_of_its_list),
        TEST(times_without_a_zone_are_written_without_one),
        TEST(a_state_without_spares_is_written_without_them),
        TEST(unknown_attributes_are_carried_over),
        TEST(protocol_5_is_the_same),
        TEST(long_names_and_large_pids_are_read),
        TEST(a_name_longer_than_any_is_refused),
        TEST(ten_thousand_nodes_come_back),
        TEST(members_are_found_whatever_the_order_of_their_coming),
        TEST(globals_are_never_run),
        TEST(every_other_opcode_is_refused),
        TEST(what_is_cut_is_refused),
        TEST(a_broken_machine_is_refused),
        TEST(what_is_no_state_is_refused),
        TEST(values_within_themselves_are_refused),
        TEST(values_that_double_are_refused),
        TEST(too_many_nodes_are_refused),
        TEST(memory_has_a_bound),
        TEST(mixed_times_are_refused),
        TEST(only_utc_is_a_time_zone),
        TEST(a_refused_text_leaves_the_state_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
