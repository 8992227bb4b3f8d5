/* SPDX-License-Identifier: Apache-2.0 */
/* test_group_failure.c - a group that breaks on one rank is broken on all, in that rank's words.
 *
 * Sentences are compared whole, save process and host: they are what the user has. */
#include "tests/marks.h"

#include <pthread.h>

#include "runtime/group/group.h"

/* ct_last_error() without its "(pid 12 on host)". */
static const char *sentence(char *text, size_t size)
{
    const char *from = ct_last_error();
    size_t used = 0;

    while (*from && used + 1 < size) {
        const char *end = strncmp(from, " (pid ", 6) ? NULL : strchr(from, ')');

        if (end)
            from = end + 1;
        else
            text[used++] = *from++;
    }
    text[used] = 0;
    return text;
}

#define EXPECT_SENTENCE(call, wanted, words) \
    expect_sentence((call), (wanted), (words), #call, __FILE__, __LINE__)

static void expect_sentence(ct_status status, ct_status wanted, const char *words, const char *what,
                            const char *file, int line)
{
    char text[1024];

    if (status != wanted)
        expect_fails(file, line, "%s: %s instead of %s; %s", what, ct_strerror(status),
                     ct_strerror(wanted), ct_last_error());
    else if (strcmp(sentence(text, sizeof text), words))
        expect_fails(file, line, "%s:\n  got    %s\n  wanted %s", what, text, words);
}

/* ---- Mismatches ------------------------------------------------------------- */

#define FIVE_FOR_FOUR                                                                          \
    "broadcast #1 (5 i32, root 0) on group created, rank 1: the ranks disagree: rank 0 calls " \
    "broadcast #1 (4 i32, root 0), rank 1 calls broadcast #1 (5 i32, root 0)"

/* Its part was over when rank 1 found out. */
static void root_that_only_sent(ct_group *group, void *arg)
{
    int32_t values[5] = { 0 };

    (void)arg;
    if (ct_rank(group) == 1) {
        await("sent", 0); /* or it asks what keeps the root */
        EXPECT_SENTENCE(ct_broadcast(group, values, 5, CT_I32, 0, NULL), CT_ERR_MISMATCH,
                        FIVE_FOR_FOUR);
        mark("found", 1);
        await("learned", 0);
        return;
    }
    EXPECT_OK(ct_broadcast(group, values, 4, CT_I32, 0, NULL));
    mark("sent", 0);
    await("found", 1);
    EXPECT_SENTENCE(ct_broadcast(group, values, 4, CT_I32, 0, NULL), CT_ERR_MISMATCH,
                    "group created is broken: the group failed on rank 1: " FIVE_FOR_FOUR);
    EXPECT_SENTENCE(ct_send(group, values, 1, CT_I32, 1, 0), CT_ERR_MISMATCH,
                    "group created is broken: the group failed on rank 1: " FIVE_FOR_FOUR);
    mark("learned", 0);
}

static void a_root_that_only_sent_learns_of_a_mismatch_from_its_next_call(void **state)
{
    (void)state;
    run_ranks(2, root_that_only_sent, NULL);
}

/* Ranks 0 and 1 have found out that they differ before rank 2 begins its first call. */
static void comes_afterwards(ct_group *group, void *arg)
{
    int32_t values[5] = { 0 };
    const char *once;

    (void)arg;
    if (ct_rank(group) != 2) {
        EXPECT_ERROR(
            ct_all_reduce(group, values, values, 4 + (size_t)ct_rank(group), CT_I32, CT_SUM, NULL),
            CT_ERR_MISMATCH, "4 i32|5 i32");
        mark("found", ct_rank(group));
        await("learned", 2);
        return;
    }
    await("found", 0);
    await("found", 1);
    EXPECT_ERROR(ct_all_reduce(group, values, values, 4, CT_I32, CT_SUM, NULL), CT_ERR_MISMATCH,
                 "4 i32|5 i32");
    EXPECT_ERROR(ct_all_reduce(group, values, values, 4, CT_I32, CT_SUM, NULL), CT_ERR_MISMATCH,
                 "group created is broken: |4 i32|5 i32");
    once = strstr(ct_last_error(), "is broken: ");
    EXPECT(once && !strstr(once + 1, "is broken: "));
    mark("learned", 2);
}

static void what_broke_a_group_is_quoted_once(void **state)
{
    (void)state;
    run_ranks(3, comes_afterwards, NULL);
}

/* Ranks 3 and 2, as 0 and 1 of a group of theirs; the others have none. */
static ct_group *group_of_two(ct_group *world)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    const int list[2] = { 3, 2 };
    ct_group *pair = NULL;

    options.parent = world;
    options.name = "pair";
    return EXPECT_OK(ct_new_group_with(list, 2, &options, &pair)) && ct_rank(pair) >= 0 ? pair
                                                                                        : NULL;
}

/* Messages name the failing rank and the rank itself by their numbers in the world. */
static void in_a_group_of_two(ct_group *world, void *arg)
{
    const int me = ct_rank(world);
    ct_group *const pair = group_of_two(world);
    int32_t values[5] = { 0 };

    (void)arg;
    if (!pair)
        return;
    EXPECT_SENTENCE(ct_all_reduce(pair, values, values, me == 3 ? 4 : 5, CT_I32, CT_SUM, NULL),
                    CT_ERR_MISMATCH,
                    me == 3 ? "all_reduce #1 (4 i32, sum) on group pair, rank 0 (rank 3 of "
                              "created): the ranks disagree: rank 2 calls all_reduce #1 (5 i32, "
                              "sum), rank 3 calls all_reduce #1 (4 i32, sum)"
                            : "all_reduce #1 (5 i32, sum) on group pair, rank 1 (rank 2 of "
                              "created): the ranks disagree: rank 2 calls all_reduce #1 (5 i32, "
                              "sum), rank 3 calls all_reduce #1 (4 i32, sum)");
    mark("found", me);
    await("found", 5 - me);
}

static void a_message_in_a_group_of_two(ct_group *world, void *arg)
{
    const int me = ct_rank(world);
    ct_group *const pair = group_of_two(world);
    int32_t values[5] = { 0 };

    (void)arg;
    if (!pair)
        return;
    if (me == 3)
        ct_send(pair, values, 4, CT_I32, 1, 0); /* may have left before it is refused */
    else
        EXPECT_SENTENCE(ct_recv(pair, values, 5, CT_I32, 0, 0, NULL), CT_ERR_MISMATCH,
                        "recv of 5 i32 from rank 0 (rank 3 of created) (tag 0) on group pair, rank "
                        "1 (rank 2 of created): rank 3 sends 4 i32, rank 2 receives 5 i32");
    mark("found", me);
    await("found", 5 - me);
}

static void messages_name_ranks_by_their_world_rank(void **state)
{
    (void)state;
    run_ranks(4, in_a_group_of_two, NULL);
}

static void and_the_peer_of_a_message_by_both(void **state)
{
    (void)state;
    run_ranks(4, a_message_in_a_group_of_two, NULL);
}

/* The last leaf of the tree finds out; the ranks between pass it on to the root. */
static void far_from_the_leaf(ct_group *group, void *arg)
{
    const int odd = ct_rank(group) == 3;
    int32_t values[5] = { 0 };

    (void)arg;
    if (odd)
        EXPECT_ERROR(ct_broadcast(group, values, 5, CT_I32, 0, NULL), CT_ERR_MISMATCH,
                     "broadcast #1|disagree|4 i32|5 i32");
    else if (ct_broadcast(group, values, 4, CT_I32, 0, NULL) == CT_OK)
        EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_MISMATCH, "broadcast #1|4 i32|5 i32");
    EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_MISMATCH, "broadcast #1|4 i32|5 i32");
    all_marked(group, "learned");
}

static void a_mismatch_reaches_all_ranks(void **state)
{
    (void)state;
    run_ranks(4, far_from_the_leaf, NULL);
}

/* Ranks 0 and 2 broadcast while rank 1 reduces: over sockets the part of each may be over before
 * any rank finds out. */
static void parts_are_over(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    int32_t in[5] = { 1, 1, 1, 1, 1 }, out[5] = { 0 };
    ct_status status;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    status = me == 1 ? ct_reduce(group, in, out, 5, CT_I32, CT_SUM, 0, NULL)
                     : ct_broadcast(group, in, 4, CT_I32, 2, NULL);
    if (status == CT_OK)
        status = ct_all_reduce(group, in, out, 1, CT_I32, CT_SUM, NULL);
    EXPECT_ERROR(status, CT_ERR_MISMATCH, "#|call");
    EXPECT_STATUS(ct_barrier(group, NULL), CT_ERR_MISMATCH);
    all_marked(group, "learned");
}

static void whose_part_was_over_learns_of_a_mismatch_from_what_comes_next(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        use_link(i > 0 ? "tcp" : NULL);
        run_ranks(3, parts_are_over, NULL);
    }
    use_link(NULL);
}

/* Where no rank sends, the fingerprint probe finds it: on every rank the same sentence, with both
 * calls. */
struct pair {
    ct_status (*call)(ct_group *group, void *arg);
    const char *here, *there; /* of rank 0, of the last */
};

static ct_status reduce_to_itself(ct_group *group, void *arg)
{
    int32_t in = 1, out = 0;

    (void)arg;
    return ct_reduce(group, &in, &out, 1, CT_I32, CT_SUM, ct_rank(group), NULL);
}

static ct_status gather_or_broadcast(ct_group *group, void *arg)
{
    const int me = ct_rank(group), last = ct_size(group) - 1;
    int32_t in = 1, out[MAX_RANKS];

    (void)arg;
    return me == 0 ? ct_gather(group, &in, out, 1, CT_I32, 0, NULL)
                   : ct_broadcast(group, &in, 1, CT_I32, me == last ? 0 : last, NULL);
}

static const struct pair pairs[] = {
    { reduce_to_itself, "reduce #1 (1 i32, sum, root 0)", "reduce #1 (1 i32, sum, root 1)" },
    { gather_or_broadcast, "gather #1 (1 i32, root 0)", "broadcast #1 (1 i32, root 0)" },
};

static void no_rank_sends(ct_group *group, void *arg)
{
    const struct pair *pair = arg;
    const double start = now_ms();
    const ct_status status = pair->call(group, NULL);

    EXPECT_ERROR(status, CT_ERR_MISMATCH, "#1|group created|the ranks disagree");
    EXPECT(now_ms() - start < GROUP_TIMEOUT_MS / 2);
    if (ct_size(group) == 2) {
        EXPECT_ERROR(status, CT_ERR_MISMATCH, pair->here);
        EXPECT_ERROR(status, CT_ERR_MISMATCH, pair->there);
    }
    EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_MISMATCH, "#1|the ranks disagree");
    all_marked(group, "asked");
}

static void ranks_that_all_wait_find_out_that_their_calls_differ(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct pair pair = pairs[i];

        run_ranks(2, no_rank_sends, &pair);
        run_ranks(4, no_rank_sends, &pair);
    }
}

/* The same questions are asked where nothing is wrong but that one is slow. */
static void slow_but_right(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    int32_t sum;

    (void)arg;
    for (int i = 0; i < 12; i++) {
        int32_t one = 1;

        if (i % ct_size(group) == me)
            nap(8);
        EXPECT_OK(ct_reduce(group, &one, &sum, 1, CT_I32, CT_SUM, i % 2, NULL));
        if (me == i % 2)
            EXPECT(sum == ct_size(group));
        EXPECT_OK(ct_broadcast(group, &one, 1, CT_I32, i % ct_size(group), NULL));
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_question_about_the_same_call_changes_nothing(void **state)
{
    (void)state;
    run_ranks(2, slow_but_right, NULL);
    run_ranks(4, slow_but_right, NULL);
}

/* ---- Aborts ------------------------------------------------------------------- */

enum waits { IN_BARRIER, IN_WORK, IN_RECV, IN_IRECV, WAITS };

static const char *const aborted[WAITS] = {
    "barrier #2 on group created, rank %d: the group failed on rank 0: ct_abort() was called on "
    "group created",
    "all_reduce #2 (1 i32, sum) on group created, rank %d: the group failed on rank 0: "
    "ct_abort() was called on group created",
    "recv of 1 i32 from rank 0 (tag 0) on group created, rank %d: the group failed on rank 0: "
    "ct_abort() was called on group created",
    "irecv of 1 i32 from rank 0 (tag 0) on group created, rank %d: the group failed on rank 0: "
    "ct_abort() was called on group created",
};

static ct_status wait_in(ct_group *group, enum waits where)
{
    int32_t value = 1;
    ct_work *work = NULL;
    ct_status status;

    if (where == IN_BARRIER)
        return ct_barrier(group, NULL);
    if (where == IN_WORK)
        status = ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, &work);
    else if (where == IN_RECV)
        return ct_recv(group, &value, 1, CT_I32, 0, 0, NULL);
    else
        status = ct_irecv(group, &value, 1, CT_I32, 0, 0, &work);
    return status == CT_OK ? ct_wait(work) : status;
}

static void abort_of_rank_0(ct_group *group, void *arg)
{
    const enum waits where = *(const enum waits *)arg;
    char words[256];

    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 0) {
        nap(20); /* most of them wait by now; the others find it broken */
        EXPECT_OK(ct_abort(group));
        EXPECT_SENTENCE(ct_barrier(group, NULL), CT_ERR_ABORTED,
                        "group created is broken: ct_abort() was called on group created");
    } else {
        const ct_status status = wait_in(group, where);

        snprintf(words, sizeof words, aborted[where], ct_rank(group));
        if (strncmp(ct_last_error(), "group created is broken", 23))
            EXPECT_SENTENCE(status, CT_ERR_PEER, words);
        EXPECT_SENTENCE(ct_barrier(group, NULL), CT_ERR_PEER,
                        "group created is broken: the group failed on rank 0: ct_abort() "
                        "was called on group created");
    }
    all_marked(group, "aborted");
}

static void an_abort_of_one_rank_wakes_all_others(void **state)
{
    (void)state;
    for (int i = 0; i < WAITS; i++) {
        enum waits where = (enum waits)i;

        run_ranks(2, abort_of_rank_0, &where);
        run_ranks(4, abort_of_rank_0, &where);
    }
}

/* The last rank comes late; only rank 0 is in a hurry.  What it sent before may be all that the
 * last one needs of it. */
static void hurry(ct_group *group, void *arg)
{
    const int me = ct_rank(group), last = ct_size(group) - 1;
    int32_t value = 1;
    ct_status status;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (me == 0)
        EXPECT_OK(ct_set_timeout(group, 150));
    for (int r = 0; me == last && r < last; r++)
        await("late", r);
    status = ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, NULL);
    if (me != last || status != CT_OK)
        EXPECT_ERROR(status, me == 0 ? CT_ERR_TIMEOUT : CT_ERR_PEER,
                     me == 0 ? "all_reduce #2|timed out after|150 ms"
                             : "the group failed on rank 0|all_reduce #2|timed out after|150 ms");
    mark("late", me);
    EXPECT_ERROR(ct_barrier(group, NULL), me == 0 ? CT_ERR_TIMEOUT : CT_ERR_PEER,
                 me == 0 ? "is broken|all_reduce #2|timed out after|150 ms"
                         : "the group failed on rank 0|all_reduce #2|timed out after|150 ms");
    all_marked(group, "told");
}

static void a_timeout_of_one_rank_ends_the_wait_of_the_others(void **state)
{
    (void)state;
    run_ranks(2, hurry, NULL);
    run_ranks(4, hurry, NULL);
}

/* The root has sent and gives up in the next call; rank 2, which hands on to rank 3, comes then. */
static void late_in_the_last_call(ct_group *group, void *arg)
{
    const unsigned long long *first = arg;
    const int me = ct_rank(group);
    int32_t value = me == 0;
    char words[64];

    snprintf(words, sizeof words, "barrier #%llu|timed out after", *first + 2);
    EXPECT_OK(ct_barrier(group, NULL));
    if (me == 0)
        EXPECT_OK(ct_set_timeout(group, 50));
    if (me == 2)
        await("gave up", 0);
    EXPECT_OK(ct_broadcast(group, &value, 1, CT_I32, 0, NULL));
    EXPECT(value == 1);
    EXPECT_ERROR(ct_barrier(group, NULL), me == 0 ? CT_ERR_TIMEOUT : CT_ERR_PEER, words);
    mark("gave up", me);
    all_marked(group, "done");
}

/* The report of rank 1 comes while rank 0 writes its own message. */
static void both_time_out(ct_group *group, void *arg)
{
    struct group_failure told = { .from_call = 1, .status = CT_ERR_TIMEOUT, .rank = 1 };

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 0) {
        snprintf(told.words, sizeof told.words, "rank 1 gave up");
        group_fail_told(group, &told);
        EXPECT_STATUS(group_fail(group, ct_fail(CT_ERR_TIMEOUT, "rank 0 gave up")), CT_ERR_TIMEOUT);
        EXPECT_SENTENCE(ct_barrier(group, NULL), CT_ERR_TIMEOUT,
                        "group created is broken: rank 0 gave up");
    }
    all_marked(group, "told");
}

static void
a_rank_that_times_out_as_another_reports_it_returns_its_timeout_from_now_on(void **state)
{
    (void)state;
    run_ranks(2, both_time_out, NULL);
}

static void a_call_that_others_have_finished_is_finished(void **state)
{
    unsigned long long firsts[] = { 1, 1ull << 44, (1ull << 63) - 1000 };
    char fault[64];

    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(fault, sizeof fault, "first_seq:%llu", firsts[i]);
        setenv("CT_FAULT", fault, 1);
        run_ranks(4, late_in_the_last_call, &firsts[i]);
    }
    unsetenv("CT_FAULT");
}

/* ---- What stays whole ------------------------------------------------------------ */

enum { MANY = 8 << 20 };

/* The rest of a message that was given up half way must not stand in the way of others. */
static void half_a_message(ct_group *group, void *arg)
{
    const int me = ct_rank(group), both[2] = { 0, 1 };
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    int32_t *values = calloc(MANY, sizeof *values), sum = 1;
    ct_group *other;
    ct_work *work;

    (void)arg;
    options.parent = group;
    EXPECT_OK(ct_new_group_with(both, 2, &options, &other));
    if (me == 0) {
        EXPECT_OK(ct_isend(group, values, MANY, CT_I32, 1, 0, &work));
        const int on_its_way = ct_wait_for(work, 3) == CT_ERR_TIMEOUT;

        EXPECT_OK(ct_abort(group));
        if (on_its_way)
            ct_wait(work);
    } else {
        ct_irecv(group, values, MANY, CT_I32, 0, 0,
                 &work); /* refused, if the abort is known already */
        ct_wait(work);
    }
    for (int i = 0; i < 10; i++)
        EXPECT_OK(ct_all_reduce(other, &sum, &sum, 1, CT_I32, CT_SUM, NULL));
    EXPECT(sum == 1024);
    EXPECT_ERROR(ct_barrier(group, NULL), me == 0 ? CT_ERR_ABORTED : CT_ERR_PEER, "ct_abort()");
    EXPECT_OK(ct_barrier(other, NULL));
    ct_destroy_process_group(other);
    free(values);
}

static void another_group_of_the_same_ranks_goes_on(void **state)
{
    (void)state;
    run_ranks(2, half_a_message, NULL);
}

/* Rank 1 makes it when rank 0 has broken it already. */
static void broken_before_it_was_made(ct_group *group, void *arg)
{
    const int both[2] = { 0, 1 };
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *early;

    (void)arg;
    options.parent = group;
    options.local_sync = 1;
    options.name = "early";
    EXPECT_OK(ct_barrier(group, NULL)); /* opens the connections */
    if (ct_rank(group) == 1)
        await("broken", 0);
    EXPECT_OK(ct_new_group_with(both, 2, &options, &early));
    if (ct_rank(group) == 0) {
        EXPECT_OK(ct_abort(early));
        mark("broken", 0);
    } else {
        EXPECT_ERROR(ct_barrier(early, NULL), CT_ERR_PEER,
                     "the group failed on rank 0|: ct_abort() was called on group early");
    }
    EXPECT_OK(ct_barrier(group, NULL));
    ct_destroy_process_group(early);
}

static void a_group_may_be_broken_before_it_is_made(void **state)
{
    (void)state;
    run_ranks(2, broken_before_it_was_made, NULL);
}

/* And when rank 0 has left it. */
static void left_before_it_was_made(ct_group *group, void *arg)
{
    const int both[2] = { 0, 1 };
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    ct_group *early;
    int word = 7;

    (void)arg;
    options.parent = group;
    options.local_sync = 1;
    options.name = "early";
    EXPECT_OK(ct_barrier(group, NULL)); /* opens the connections */
    if (ct_rank(group) == 1)
        EXPECT_OK(ct_recv(group, &word, 1, CT_I32, 0, 0, NULL));
    EXPECT_OK(ct_new_group_with(both, 2, &options, &early));
    if (ct_rank(group) == 0) {
        EXPECT_OK(ct_send(early, &word, 1, CT_I32, 1, 0));
        EXPECT_OK(ct_destroy_process_group(early));
        EXPECT_OK(ct_send(group, &word, 1, CT_I32, 1, 0));
    } else {
        EXPECT_OK(ct_recv(early, &word, 1, CT_I32, 0, 0, NULL)); /* it was sent before */
        EXPECT_ERROR(ct_recv(early, &word, 1, CT_I32, 0, 0, NULL), CT_ERR_PEER,
                     "recv|rank 0|has destroyed the group");
        EXPECT_OK(ct_destroy_process_group(early));
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void who_has_left_a_group_before_it_is_made_is_not_waited_for(void **state)
{
    (void)state;
    run_ranks(2, left_before_it_was_made, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_root_that_only_sent_learns_of_a_mismatch_from_its_next_call),
        cmocka_unit_test(what_broke_a_group_is_quoted_once),
        cmocka_unit_test(messages_name_ranks_by_their_world_rank),
        cmocka_unit_test(and_the_peer_of_a_message_by_both),
        cmocka_unit_test(a_mismatch_reaches_all_ranks),
        cmocka_unit_test(whose_part_was_over_learns_of_a_mismatch_from_what_comes_next),
        cmocka_unit_test(ranks_that_all_wait_find_out_that_their_calls_differ),
        cmocka_unit_test(a_question_about_the_same_call_changes_nothing),
        cmocka_unit_test(an_abort_of_one_rank_wakes_all_others),
        cmocka_unit_test(a_timeout_of_one_rank_ends_the_wait_of_the_others),
        cmocka_unit_test(
            a_rank_that_times_out_as_another_reports_it_returns_its_timeout_from_now_on),
        cmocka_unit_test(a_call_that_others_have_finished_is_finished),
        cmocka_unit_test(another_group_of_the_same_ranks_goes_on),
        cmocka_unit_test(a_group_may_be_broken_before_it_is_made),
        cmocka_unit_test(who_has_left_a_group_before_it_is_made_is_not_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
