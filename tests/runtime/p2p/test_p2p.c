/* SPDX-License-Identifier: Apache-2.0 */
/* test_p2p.c - messages between two ranks: which receive gets which message, sizes from nothing to
 * more than any buffer, a rank with itself, any source, and counts that differ.
 *
 * Bodies end with a barrier where a rank would otherwise leave while others still exchange
 * messages with it. */
#include "tests/harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/group/group.h"
#include "runtime/messaging/messaging_internal.h"

enum { LARGE = (3 << 20) + 5 }; /* bytes; beyond eager sends and both rings */

/* Every rank r sends i = 0..9 on tag i%2 to its right; of each tag they come in order. */
static void in_posted_order(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    const int right = (me + 1) % p, left = (me + p - 1) % p;
    ct_work *sends[10], *recvs[10];
    int32_t out[10], in[10];

    (void)arg;
    for (int i = 0; i < 10; i++) { /* received: tag 1 first, then tag 0 */
        in[i] = -1;
        EXPECT_OK(ct_irecv(group, &in[i], 1, CT_I32, left, i < 5, &recvs[i]));
    }
    for (int i = 0; i < 10; i++) {
        out[i] = 100 * me + i;
        EXPECT_OK(ct_isend(group, &out[i], 1, CT_I32, right, i % 2, &sends[i]));
    }
    for (int i = 9; i >= 0; i--) {
        EXPECT_OK(ct_wait(recvs[i]));
        EXPECT_OK(ct_wait(sends[i]));
    }
    for (int i = 0; i < 10; i++)
        EXPECT(in[i] == 100 * left + (i < 5 ? 2 * i + 1 : 2 * (i - 5)));
    EXPECT_OK(ct_barrier(group, NULL));
}

static void receives_match_by_peer_and_tag_in_posted_order(void **state)
{
    (void)state;
    run_ranks(2, in_posted_order, NULL);
    run_ranks(3, in_posted_order, NULL);
}

/* Rank 0 sends tags 0..4, small and large; rank 1 receives 4..0, so four wait for it. */
static void tags_backwards(ct_group *group, void *arg)
{
    const size_t n = *(const size_t *)arg;
    int32_t *block = calloc(5 * n, sizeof *block);
    ct_work *work[5];

    for (int tag = 0; tag < 5 && ct_rank(group) == 0; tag++) {
        block[(size_t)tag * n] = block[(size_t)tag * n + n - 1] = 7 + tag;
        EXPECT_OK(ct_isend(group, block + (size_t)tag * n, n, CT_I32, 1, tag, &work[tag]));
    }
    for (int tag = 0; tag < 5 && ct_rank(group) == 0; tag++)
        EXPECT_OK(ct_wait(work[tag]));
    for (int tag = 4; tag >= 0 && ct_rank(group) == 1; tag--) {
        int from = -1;

        EXPECT_OK(ct_recv(group, block, n, CT_I32, 0, tag, &from));
        EXPECT(from == 0 && block[0] == 7 + tag && block[n - 1] == 7 + tag);
    }
    free(block);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_receive_finds_its_tag_among_those_that_came_earlier(void **state)
{
    size_t small = 1, large = LARGE / 4;

    (void)state;
    run_ranks(2, tags_backwards, &small);
    run_ranks(2, tags_backwards, &large);
}

/* Ranks 1..p-1 each send r*r on tag 3; rank 0 takes them as they come. */
static void from_anybody(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    int seen[MAX_RANKS] = { 0 };
    int32_t value = me * me;

    (void)arg;
    if (me > 0)
        EXPECT_OK(ct_send(group, &value, 1, CT_I32, 0, 3));
    for (int i = 1; i < p && me == 0; i++) {
        ct_work *work = NULL;
        int from = -1;

        if (i % 2) {
            EXPECT_OK(ct_recv(group, &value, 1, CT_I32, CT_ANY_SOURCE, 3, &from));
        } else {
            EXPECT_OK(ct_irecv(group, &value, 1, CT_I32, CT_ANY_SOURCE, 3, &work));
            EXPECT_OK(ct_wait_from(work, &from));
        }
        if (!EXPECT(from > 0 && from < p && value == from * from && !seen[from]))
            break;
        seen[from] = 1;
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void any_source_says_who_it_was(void **state)
{
    (void)state;
    run_ranks(2, from_anybody, NULL);
    run_ranks(5, from_anybody, NULL);
}

/* Both send 3 MiB before either receives: the byte at i is i + rank. */
static void large_both_ways(ct_group *group, void *arg)
{
    const int me = ct_rank(group), other = 1 - me;
    uint8_t *out = malloc(LARGE), *in = calloc(1, LARGE);
    ct_work *sending, *receiving;
    size_t right = 0;

    (void)arg;
    for (size_t i = 0; i < LARGE; i++)
        out[i] = (uint8_t)(i + (size_t)me);
    for (int round = 0; round < 3; round++) {
        memset(in, 0xee, LARGE);
        EXPECT_OK(ct_isend(group, out, LARGE, CT_U8, other, round, &sending));
        EXPECT_OK(ct_irecv(group, in, LARGE, CT_U8, other, round, &receiving));
        EXPECT_OK(ct_wait(sending));
        EXPECT_OK(ct_wait(receiving));
        right = 0;
        for (size_t i = 0; i < LARGE; i++)
            right += in[i] == (uint8_t)(i + (size_t)other);
        EXPECT(right == LARGE);
    }
    free(out);
    free(in);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void large_messages_go_both_ways_at_once(void **state)
{
    (void)state;
    run_ranks(2, large_both_ways, NULL);
}

static void to_oneself(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    int32_t out[3] = { 1, 2, 3 }, in[3] = { 0 };
    ct_work *receiving = NULL, *sending = NULL;

    (void)arg;
    EXPECT_ERROR(ct_send(group, out, 3, CT_I32, me, 5), CT_ERR_INVALID, "send|itself|irecv");
    EXPECT_OK(ct_irecv(group, in, 3, CT_I32, me, 5, &receiving));
    EXPECT_OK(ct_send(group, out, 3, CT_I32, me, 5));
    EXPECT_OK(ct_wait(receiving));
    EXPECT(memcmp(in, out, sizeof in) == 0);
    memset(in, 0, sizeof in);
    EXPECT_OK(ct_isend(group, out, 3, CT_I32, me, 6, &sending));
    EXPECT_OK(ct_recv(group, in, 3, CT_I32, me, 6, NULL));
    EXPECT_OK(ct_wait(sending));
    EXPECT(memcmp(in, out, sizeof in) == 0);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_send_to_oneself_needs_a_posted_receive(void **state)
{
    (void)state;
    run_ranks(1, to_oneself, NULL);
    run_ranks(2, to_oneself, NULL);
}

/* Rank 0 sends n elements, rank 1 has room for n+1: each gets an error that names both counts. */
static void counts_differ(ct_group *group, void *arg)
{
    const size_t n = *(const size_t *)arg;
    int32_t *block = calloc(n + 1, sizeof *block);
    char words[100];
    ct_status status;

    snprintf(words, sizeof words, ": rank 0 sends %zu i32, rank 1 receives %zu i32", n, n + 1);
    if (ct_rank(group) == 1) {
        EXPECT_ERROR(ct_recv(group, block, n + 1, CT_I32, 0, 0, NULL), CT_ERR_MISMATCH, words);
    } else {
        status = ct_send(group, block, n, CT_I32, 1, 0); /* small ones are gone already */
        if (n >= 100)
            EXPECT_ERROR(status, CT_ERR_MISMATCH, words);
        else if (status != CT_OK)
            EXPECT_ERROR(status, CT_ERR_MISMATCH, words);
    }
    free(block);
}

static void another_count_is_a_mismatch(void **state)
{
    size_t small = 3, large = LARGE / 4;

    (void)state;
    run_ranks(2, counts_differ, &small);
    run_ranks(2, counts_differ, &large);
}

/* 1000 numbers to the right and back again, each waiting for the one before. */
static void thousand(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    int right = 0;

    (void)arg;
    for (int32_t i = 0; i < 1000; i++) {
        int32_t value = me == 0 ? i : -1;

        if (me == 0) {
            EXPECT_OK(ct_send(group, &value, 1, CT_I32, 1, 0));
            EXPECT_OK(ct_recv(group, &value, 1, CT_I32, 1, 0, NULL));
            right += value == 2 * i;
        } else {
            EXPECT_OK(ct_recv(group, &value, 1, CT_I32, 0, 0, NULL));
            right += value == i;
            value *= 2;
            EXPECT_OK(ct_send(group, &value, 1, CT_I32, 0, 0));
        }
    }
    EXPECT(right == 1000);
    EXPECT_OK(ct_send(group, NULL, 0, CT_F64, 1 - me, 1)); /* nothing, but it is a message */
    EXPECT_OK(ct_recv(group, NULL, 0, CT_F64, 1 - me, 1, NULL));
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_thousand_small_ones_and_an_empty_one_arrive(void **state)
{
    (void)state;
    run_ranks(2, thousand, NULL);
}

/* 1000 sent before the first is received: they wait at the other side, in order. */
static void thousand_unexpected(ct_group *group, void *arg)
{
    int right = 0;

    (void)arg;
    for (int32_t i = 0; i < 1000; i++) {
        int32_t value = i;

        if (ct_rank(group) == 0)
            EXPECT_OK(ct_send(group, &value, 1, CT_I32, 1, i % 3));
    }
    if (ct_rank(group) == 1)
        nap(20);
    for (int tag = 2; tag >= 0 && ct_rank(group) == 1; tag--)
        for (int32_t i = tag; i < 1000; i += 3) {
            int32_t value = -1;

            EXPECT_OK(ct_recv(group, &value, 1, CT_I32, 0, tag, NULL));
            right += value == i;
        }
    EXPECT(ct_rank(group) == 0 || right == 1000);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_thousand_wait_in_order_for_their_receives(void **state)
{
    (void)state;
    run_ranks(2, thousand_unexpected, NULL);
}

/* Around what a socket is read ahead by, and up to what is sent unasked. */
static const size_t sizes[] = { 1,     0,     100,   3000,          65536 - 112, 65536 - 111, 7,
                                32768, 32769, 65536, 65536 + 40000, 262144,      262145,      13 };
enum { SIZES = sizeof sizes / sizeof *sizes, ROUNDS = 3, ALL_SIZES = SIZES * ROUNDS };

static unsigned char byte_of(int message, size_t at)
{
    return (unsigned char)(message * 31 + (int)(at % 251));
}

/* A third of them finds its receive posted, the others come before they are asked for. */
static void of_all_sizes(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    unsigned char *data[ALL_SIZES];
    ct_work *work[ALL_SIZES];

    (void)arg;
    for (int i = 0; i < ALL_SIZES; i++) {
        data[i] = calloc(1, sizes[i % SIZES] + 1);
        for (size_t at = 0; me == 0 && at < sizes[i % SIZES]; at++)
            data[i][at] = byte_of(i, at);
        if (me == 1 && i % 3 == 0)
            EXPECT_OK(ct_irecv(group, data[i], sizes[i % SIZES], CT_U8, 0, i, &work[i]));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    for (int i = 0; i < ALL_SIZES && me == 0; i++)
        EXPECT_OK(ct_isend(group, data[i], sizes[i % SIZES], CT_U8, 1, i, &work[i]));
    EXPECT_OK(ct_barrier(group, NULL));
    for (int i = 0; i < ALL_SIZES && me == 1; i++)
        if (i % 3)
            EXPECT_OK(ct_irecv(group, data[i], sizes[i % SIZES], CT_U8, 0, i, &work[i]));
    for (int i = 0; i < ALL_SIZES; i++) {
        size_t right = 0;

        EXPECT_OK(ct_wait(work[i]));
        while (right < sizes[i % SIZES] && data[i][right] == byte_of(i, right))
            right++;
        EXPECT(right == sizes[i % SIZES] && data[i][right] == 0);
        free(data[i]);
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void messages_of_all_sizes_arrive_whole(void **state)
{
    (void)state;
    run_ranks(2, of_all_sizes, NULL);
    use_link("tcp");
    run_ranks(2, of_all_sizes, NULL);
    use_link(NULL);
}

/* Bytes that came before they were asked for. */
static size_t bytes_kept(const ct_group *group)
{
    struct mesh *mesh = group->mesh;
    size_t sum = 0;

    pthread_mutex_lock(&mesh->transport->lock);
    for (const struct unexpected *u = mesh->messages->unexpected; u; u = u->next)
        sum += u->frame.kind == FRAME_EAGER ? u->frame.bytes : 0;
    pthread_mutex_unlock(&mesh->transport->lock);
    return sum;
}

enum { AHEAD = 160 };

struct ahead {
    size_t bytes, least; /* of a message; of those that are kept */
};

/* What is sent last is the first to be received: all others stand before it.  Each is as large
 * as one can be that goes unasked, so those that did are kept.  A ring surely takes two of 100,000
 * bytes whole; whether it takes more depends on how fast the receiver reads. */
static void runs_ahead(ct_group *group, void *arg)
{
    const struct ahead *ahead = arg;
    const size_t bytes = ahead->bytes;
    const int me = ct_rank(group);
    unsigned char *data = calloc(AHEAD, bytes);
    ct_work *work[AHEAD + 1];
    size_t kept;
    char last = 1;

    EXPECT_OK(ct_barrier(group, NULL)); /* there is a connection */
    if (me == 1) {
        EXPECT_OK(ct_recv(group, &last, 1, CT_U8, 0, 1, NULL));
        kept = bytes_kept(group);
        EXPECT(kept >= ahead->least && kept <= EAGER_CREDIT);
    }
    for (size_t i = 0; i < AHEAD; i++) {
        unsigned char *const at = data + i * bytes;

        if (me == 0) {
            memset(at, (int)i, bytes);
            EXPECT_OK(ct_isend(group, at, bytes, CT_U8, 1, 0, &work[i]));
        } else {
            EXPECT_OK(ct_recv(group, at, bytes, CT_U8, 0, 0, NULL));
            EXPECT(at[0] == i && at[bytes - 1] == i);
        }
    }
    if (me == 0)
        EXPECT_OK(ct_isend(group, &last, 1, CT_U8, 1, 1, &work[AHEAD]));
    for (int i = 0; i <= AHEAD && me == 0; i++)
        EXPECT_OK(ct_wait(work[i]));
    EXPECT_OK(ct_barrier(group, NULL));
    free(data);
}

static void who_runs_ahead_fills_no_memory(void **state)
{
    struct ahead most = { EAGER_MOST, EAGER_CREDIT / 2 }, small = { EAGER_BYTES, EAGER_CREDIT / 2 };
    struct ahead in_ring = { 100000, 2 * 100000 }, most_in_ring = { EAGER_MOST, 0 };

    (void)state;
    use_link("shm");
    run_processes(2, runs_ahead, &in_ring);
    run_processes(2, runs_ahead, &most_in_ring);
    run_processes(2, runs_ahead, &small);
    use_link("tcp");
    run_processes(2, runs_ahead, &most);
    run_processes(2, runs_ahead, &small);
    use_link(NULL);
}

enum { MANY = 60000 };

/* What it takes to keep them is counted, too. */
static void many_run_ahead(ct_group *group, void *arg)
{
    ct_work **work = malloc(sizeof(ct_work *) * MANY);
    struct messages *m = group->mesh->messages;
    size_t kept = 0;
    char last = 1;

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    for (int i = 0; i < MANY && ct_rank(group) == 0; i++)
        EXPECT_OK(ct_isend(group, NULL, 0, CT_U8, 1, 0, &work[i]));
    if (ct_rank(group) == 0) {
        EXPECT_OK(ct_send(group, &last, 1, CT_U8, 1, 1));
    } else {
        EXPECT_OK(ct_recv(group, &last, 1, CT_U8, 0, 1, NULL));
        pthread_mutex_lock(&group->mesh->transport->lock);
        for (const struct unexpected *u = m->unexpected; u; u = u->next)
            kept += u->frame.kind == FRAME_EAGER;
        pthread_mutex_unlock(&group->mesh->transport->lock);
        EXPECT(kept > MANY / 3 && kept <= EAGER_CREDIT / sizeof(struct unexpected));
    }
    for (int i = 0; i < MANY; i++)
        if (ct_rank(group) == 0)
            EXPECT_OK(ct_wait(work[i]));
        else
            EXPECT_OK(ct_recv(group, NULL, 0, CT_U8, 0, 0, NULL));
    EXPECT_OK(ct_barrier(group, NULL));
    free(work);
}

static void many_empty_ones_fill_none_either(void **state)
{
    (void)state;
    use_link("shm");
    run_processes(2, many_run_ahead, NULL);
    use_link(NULL);
}

/* Each sends before it receives, more than a peer keeps in all: what was received may be sent
 * again. */
static void face_to_face(ct_group *group, void *arg)
{
    enum { ROUNDS_OF_THEM = 6000, SIZE = 1400 };
    const int other = 1 - ct_rank(group);
    char data[SIZE] = "";
    int right = 0;

    (void)arg;
    _Static_assert(ROUNDS_OF_THEM * SIZE > 2 * EAGER_CREDIT, "else none comes to the end of it");
    for (int i = 0; i < ROUNDS_OF_THEM; i++) {
        right += ct_send(group, data, SIZE, CT_U8, other, 0) == CT_OK;
        right += ct_recv(group, data, SIZE, CT_U8, other, 0, NULL) == CT_OK;
        if (!EXPECT(right == 2 * (i + 1)))
            break;
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void who_receives_what_comes_is_always_sent_more(void **state)
{
    (void)state;
    use_link("shm");
    run_processes(2, face_to_face, NULL);
    use_link("tcp");
    run_processes(2, face_to_face, NULL);
    use_link(NULL);
}

enum { SLOW = 64 << 20, ENDLESS = 1 << 30 };

/* More bytes than any memory moves in four milliseconds: they flow, but not in time. */
static void slower_than_its_limit(ct_group *group, void *arg)
{
    char *buf = calloc(SLOW, 1);

    (void)arg;
    EXPECT(buf != NULL);
    EXPECT_OK(ct_set_next_timeout(group, ct_rank(group) == 0 ? 4 : 1000));
    if (ct_rank(group) == 0)
        EXPECT_ERROR(
            ct_recv(group, buf, SLOW, CT_U8, 1, 5, NULL), CT_ERR_TIMEOUT,
            "recv of 67108864 u8 from rank 1 (tag 5) on group created, rank 0|timed out after|"
            "limit 4 ms, set by ct_set_next_timeout");
    else
        ct_send(group, buf, SLOW, CT_U8, 0, 5); /* accepted in time, or not */
    EXPECT_OK(ct_barrier(group, NULL));
    free(buf);
}

static void a_limit_is_of_the_whole_message(void **state)
{
    (void)state;
    run_ranks(2, slower_than_its_limit, NULL);
}

/* Of its pages only those are there that something came to. */
static void leaves_in_the_middle(ct_group *group, void *arg)
{
    char *buf = mmap(NULL, ENDLESS, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ct_work *work = NULL;

    (void)arg;
    if (!EXPECT(buf != MAP_FAILED))
        return;
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 1) {
        EXPECT_OK(ct_isend(group, buf, ENDLESS, CT_U8, 0, 5, &work));
        nap(4); /* a thread of the library's sends: some of it, as a rule */
        rank_leaves();
    }
    EXPECT_ERROR(ct_recv(group, buf, ENDLESS, CT_U8, 1, 5, NULL), CT_ERR_PEER,
                 "recv of 1073741824 u8 from rank 1|rank 1 (pid|is gone: it closed its connection");
    munmap(buf, ENDLESS);
}

static void of_a_message_that_came_in_part_the_sender_is_named(void **state)
{
    (void)state;
    use_link("tcp");
    run_processes(2, leaves_in_the_middle, NULL);
    use_link(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receives_match_by_peer_and_tag_in_posted_order),
        cmocka_unit_test(a_receive_finds_its_tag_among_those_that_came_earlier),
        cmocka_unit_test(any_source_says_who_it_was),
        cmocka_unit_test(large_messages_go_both_ways_at_once),
        cmocka_unit_test(a_send_to_oneself_needs_a_posted_receive),
        cmocka_unit_test(another_count_is_a_mismatch),
        cmocka_unit_test(a_thousand_small_ones_and_an_empty_one_arrive),
        cmocka_unit_test(a_thousand_wait_in_order_for_their_receives),
        cmocka_unit_test(messages_of_all_sizes_arrive_whole),
        cmocka_unit_test(who_runs_ahead_fills_no_memory),
        cmocka_unit_test(many_empty_ones_fill_none_either),
        cmocka_unit_test(who_receives_what_comes_is_always_sent_more),
        cmocka_unit_test(a_limit_is_of_the_whole_message),
        cmocka_unit_test(of_a_message_that_came_in_part_the_sender_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
