/* SPDX-License-Identifier: Apache-2.0 */
/* test_p2p_batch.c - many sends and receives at once: any mix of them, what each match gets, how
 * many writes they take, and what becomes of the others when one fails or is refused. */
#include "tests/harness.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZES = 4, MOST_OPS = 2 * MAX_RANKS * SIZES };
static const size_t sizes[SIZES] = { 0, 3, 9000, 300000 }; /* the last two are offered first */

/* Every write to a socket of a link goes through here, instead of libc's. */
static _Atomic int writes;

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    atomic_fetch_add(&writes, 1);
    return (ssize_t)syscall(SYS_sendmsg, fd, message, flags);
}

static ct_p2p give(int32_t *buf, size_t count, int peer, int tag)
{
    return (ct_p2p){ CT_P2P_SEND, buf, count, CT_I32, peer, tag };
}

static ct_p2p take(int32_t *buf, size_t count, int peer, int tag)
{
    return (ct_p2p){ CT_P2P_RECV, buf, count, CT_I32, peer, tag };
}

/* What rank `from` sends to rank `to` by its s-th size: the same number throughout. */
static int32_t value_of(int from, int to, int s)
{
    return 1 + from * 1000 + to * 10 + s;
}

static int all_are(const int32_t *at, size_t count, int32_t value)
{
    for (size_t i = 0; i < count; i++)
        if (at[i] != value)
            return 0;
    return 1;
}

/* ---- Any mix ------------------------------------------------------------- */

struct mix {
    ct_p2p ops[MOST_OPS];
    int count;
    int32_t *memory[MOST_OPS];
};

static void add(struct mix *m, int peer, int me, int s, int is_send)
{
    int32_t *at = malloc((sizes[s] + 1) * sizeof *at);

    for (size_t i = 0; i < sizes[s]; i++)
        at[i] = is_send ? value_of(me, peer, s) : -1;
    m->memory[m->count] = at;
    m->ops[m->count++] = is_send ? give(at, sizes[s], peer, s) : take(at, sizes[s], peer, s);
}

/* Each rank sends each size to each, itself too, and lists all its sends first. */
static void everything_at_once(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group), blocks = *(const int *)arg;
    struct mix m = { .count = 0 };
    ct_work *works[MOST_OPS];

    for (int is_send = 1; is_send >= 0; is_send--)
        for (int peer = 0; peer < p; peer++)
            for (int s = 0; s < SIZES; s++)
                add(&m, peer, me, s, is_send);
    EXPECT_OK(ct_batch_isend_irecv(group, m.ops, m.count, blocks ? NULL : works));
    for (int i = m.count - 1; i >= 0 && !blocks; i--)
        EXPECT_OK(ct_wait(works[i]));
    for (int i = 0; i < m.count; i++) {
        const ct_p2p *op = &m.ops[i];

        EXPECT(op->kind == CT_P2P_SEND
               || all_are(op->buf, op->count, value_of(op->peer, me, op->tag)));
        free(m.memory[i]);
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void any_mix_of_sends_and_receives_arrives(void **state)
{
    int waits_for_each = 0, blocks = 1;

    (void)state;
    for (int p = 1; p <= 4; p++) {
        run_ranks(p, everything_at_once, &waits_for_each);
        run_ranks(p, everything_at_once, &blocks);
    }
}

/* The same in the groups of even and of odd ranks, in which ranks go backwards. */
static void in_a_part(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    ct_group *part = NULL;

    EXPECT_OK(ct_split_group(group, me % 2, -me, &part));
    everything_at_once(part, arg);
    EXPECT_OK(ct_destroy_process_group(part));
}

static void ranks_are_those_of_the_group(void **state)
{
    int blocks = 1;

    (void)state;
    run_ranks(4, in_a_part, &blocks);
}

/* ---- Order ---------------------------------------------------------------- */

enum { MANY = 200 };

/* Rank 0 sends 0, 1, 2, ... by one list on one tag; rank 1 takes half of them by a list, then the
 * rest one by one. */
static void one_after_the_other(ct_group *group, void *arg)
{
    int32_t values[MANY];
    ct_p2p ops[MANY];

    (void)arg;
    for (int i = 0; i < MANY; i++) {
        values[i] = ct_rank(group) == 0 ? i : -1;
        ops[i] = ct_rank(group) == 0 ? give(&values[i], 1, 1, 0) : take(&values[i], 1, 0, 0);
    }
    EXPECT_OK(ct_batch_isend_irecv(group, ops, ct_rank(group) == 0 ? MANY : MANY / 2, NULL));
    for (int i = MANY / 2; i < MANY && ct_rank(group) == 1; i++)
        EXPECT_OK(ct_recv(group, &values[i], 1, CT_I32, 0, 0, NULL));
    for (int i = 0; i < MANY; i++)
        EXPECT(values[i] == i);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void they_match_in_the_order_of_the_list(void **state)
{
    (void)state;
    run_ranks(2, one_after_the_other, NULL);
}

/* Ranks 1..p-1 each send r*r; rank 0 learns from each work whose it got. */
static void from_anybody(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    int32_t values[MAX_RANKS] = { me * me };
    ct_work *works[MAX_RANKS];
    ct_p2p ops[MAX_RANKS];
    int from = -1, sum = 0;

    (void)arg;
    ops[0] = give(&values[0], 1, 0, 3);
    for (int i = 1; i < p && me == 0; i++)
        ops[i - 1] = take(&values[i], 1, CT_ANY_SOURCE, 3);
    EXPECT_OK(ct_batch_isend_irecv(group, ops, me == 0 ? p - 1 : 1, works));
    for (int i = 0; i < (me == 0 ? p - 1 : 1); i++) {
        EXPECT_OK(ct_wait_from(works[i], &from));
        EXPECT(me != 0 || (from > 0 && values[i + 1] == from * from));
        sum += from;
    }
    EXPECT(me != 0 || sum == p * (p - 1) / 2);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void each_work_says_whose_message_it_got(void **state)
{
    (void)state;
    run_ranks(2, from_anybody, NULL);
    run_ranks(4, from_anybody, NULL);
}

/* ---- One write ------------------------------------------------------------ */

enum { SMALL = 30 };

/* The connection is there, and takes more than these: rank 0 counts its writes. */
static void small_ones(ct_group *group, void *arg)
{
    const int me = ct_rank(group), other = 1 - me;
    int32_t values[SMALL];
    ct_work *works[SMALL];
    ct_p2p ops[SMALL];

    (void)arg;
    EXPECT_OK(ct_barrier(group, NULL));
    for (int i = 0; i < SMALL; i++) {
        values[i] = me == 0 ? 5 * i : -1;
        ops[i] = me == 0 ? give(&values[i], 1, other, i) : take(&values[i], 1, other, i);
    }
    if (me == 1) { /* quiet while the other counts: its word comes by itself */
        EXPECT_OK(ct_recv(group, values, 1, CT_I32, 0, SMALL, NULL));
        EXPECT_OK(ct_batch_isend_irecv(group, ops, SMALL, NULL));
    } else {
        const int before = atomic_load(&writes);

        EXPECT_OK(ct_batch_isend_irecv(group, ops, SMALL, works));
        EXPECT(atomic_load(&writes) - before == 1);
        for (int i = 0; i < SMALL; i++)
            EXPECT_OK(ct_wait(works[i]));
        EXPECT_OK(ct_send(group, values, 1, CT_I32, 1, SMALL));
    }
    for (int i = 0; i < SMALL; i++)
        EXPECT(values[i] == 5 * i);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void small_ones_to_one_peer_leave_in_one_write(void **state)
{
    (void)state;
    use_link("tcp");
    run_processes(2, small_ones, NULL);
    use_link(NULL);
}

/* ---- What goes wrong ------------------------------------------------------- */

static void refused(ct_group *group, const ct_p2p *ops, int count, const char *words)
{
    ct_work *works[4] = { (ct_work *)1, (ct_work *)1, (ct_work *)1, (ct_work *)1 };

    EXPECT_ERROR(ct_batch_isend_irecv(group, ops, count, works), CT_ERR_INVALID, words);
    for (int i = 0; i < count; i++)
        EXPECT(works[i] == NULL);
    EXPECT_ERROR(ct_batch_isend_irecv(group, ops, count, NULL), CT_ERR_INVALID, words);
}

/* What a refused list would have sent first, 7, is not what comes: that is 8. */
static void with_a_mistake(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    const int right = (me + 1) % p, left = (me + p - 1) % p;
    int32_t bad = 7, good = 8, got = 0;
    ct_p2p ops[3] = { give(&bad, 1, right, 0), take(&got, 1, left, 0) };

    (void)arg;
    ops[2] = give(&bad, 1, p, 0);
    refused(group, ops, 3, "batch_isend_irecv|op 2 of 3|rank|ranks of group");
    ops[2] = give(&bad, 1, right, -1);
    refused(group, ops, 3, "op 2 of 3|tag -1");
    ops[2] = give(NULL, 1, right, 0);
    refused(group, ops, 3, "op 2 of 3|NULL");
    ops[2] = give(&bad, 1, CT_ANY_SOURCE, 0);
    refused(group, ops, 3, "op 2 of 3|rank -1");
    ops[2] = (ct_p2p){ CT_P2P_SEND, &bad, 1, (ct_dtype)99, right, 0 };
    refused(group, ops, 3, "op 2 of 3|99 is not a dtype");
    ops[2] = (ct_p2p){ 0 };
    refused(group, ops, 3, "op 2 of 3|neither CT_P2P_SEND nor CT_P2P_RECV");
    EXPECT_ERROR(ct_batch_isend_irecv(group, NULL, 1, NULL), CT_ERR_INVALID,
                 "1 ops, but the list of them is NULL");
    EXPECT_ERROR(ct_batch_isend_irecv(group, ops, -1, NULL), CT_ERR_INVALID, "-1 ops");
    EXPECT_OK(ct_batch_isend_irecv(group, NULL, 0, NULL));
    EXPECT(got == 0);
    ops[0].buf = &good;
    EXPECT_OK(ct_batch_isend_irecv(group, ops, 2, NULL));
    EXPECT(got == 8);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_refused_list_has_begun_nothing(void **state)
{
    (void)state;
    run_ranks(2, with_a_mistake, NULL);
    run_ranks(3, with_a_mistake, NULL);
}

/* Who waits for the whole list would wait for ever for a receive that only it could post. */
static void to_oneself(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    int32_t out[2] = { 4, 5 }, in[2] = { 0 };
    const ct_p2p ops[] = { give(&out[0], 1, me, 0), give(&out[1], 1, me, 0), take(&in[0], 1, me, 0),
                           take(&in[1], 1, CT_ANY_SOURCE, 0) };
    ct_work *works[2], *earlier;

    (void)arg;
    EXPECT_ERROR(ct_batch_isend_irecv(group, ops, 1, NULL), CT_ERR_INVALID, "itself|tag 0");
    EXPECT_ERROR(ct_batch_isend_irecv(group, ops, 3, NULL), CT_ERR_INVALID, "op 0 of 3|itself");
    EXPECT_OK(ct_batch_isend_irecv(group, ops, 4, NULL));
    EXPECT(in[0] == 4 && in[1] == 5);
    EXPECT_OK(ct_irecv(group, &in[1], 1, CT_I32, me, 0, &earlier));
    EXPECT_OK(ct_batch_isend_irecv(group, ops, 1, NULL));
    EXPECT_OK(ct_wait(earlier));
    EXPECT(in[1] == 4);
    EXPECT_OK(ct_batch_isend_irecv(group, ops, 2, works)); /* it may still post them */
    EXPECT_OK(ct_batch_isend_irecv(group, ops + 2, 2, NULL));
    EXPECT_OK(ct_wait(works[1]));
    EXPECT_OK(ct_wait(works[0]));
    EXPECT(in[0] == 4 && in[1] == 5);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_send_to_oneself_needs_its_receive(void **state)
{
    (void)state;
    run_ranks(1, to_oneself, NULL);
    run_ranks(2, to_oneself, NULL);
}

/* Rank 1 sends 2, 3 and 2 elements where rank 0 takes 2, 2 and 2. */
static void one_count_differs(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    int32_t values[3][3];
    ct_p2p ops[3];

    (void)arg;
    for (int i = 0; i < 3; i++) {
        values[i][0] = values[i][1] = values[i][2] = me == 1 ? 40 + i : -1;
        ops[i] = me == 1 ? give(values[i], i == 1 ? 3 : 2, 0, i) : take(values[i], 2, 1, i);
    }
    if (me == 1)
        EXPECT_OK(ct_batch_isend_irecv(group, ops, 3, NULL)); /* small: gone already */
    else
        EXPECT_ERROR(ct_batch_isend_irecv(group, ops, 3, NULL), CT_ERR_MISMATCH,
                     "batch_isend_irecv|op 1 of 3|recv|rank 1|tag 1");
    for (int i = 0; i < 3; i++)
        EXPECT(all_are(values[i], 2, me == 0 && i == 1 ? -1 : 40 + i));
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_mismatch_is_named_and_the_others_arrive(void **state)
{
    (void)state;
    run_ranks(2, one_count_differs, NULL);
}

/* What came before the barrier arrives, though the other in the list never will. */
static void one_never_comes(ct_group *group, void *arg)
{
    int32_t value = ct_rank(group) == 1 ? 6 : -1, never = -1;
    const ct_p2p ops[2] = { take(&never, 1, 1, 0), take(&value, 1, 1, 1) };

    (void)arg;
    if (ct_rank(group) == 1)
        EXPECT_OK(ct_send(group, &value, 1, CT_I32, 0, 1));
    EXPECT_OK(ct_barrier(group, NULL));
    if (ct_rank(group) == 0) {
        EXPECT_OK(ct_set_next_timeout(group, 30));
        EXPECT_ERROR(ct_batch_isend_irecv(group, ops, 2, NULL), CT_ERR_TIMEOUT,
                     "op 0 of 2|recv|rank 1|tag 0|30 ms|ct_set_next_timeout");
    }
    EXPECT(value == 6 && never == -1);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void one_limit_is_for_the_whole_list(void **state)
{
    (void)state;
    run_ranks(2, one_never_comes, NULL);
}

static void not_a_member(ct_group *group, void *arg)
{
    ct_group *part = NULL;
    int32_t value = 0;
    const ct_p2p op = give(&value, 1, 0, 0);
    ct_work *work = (ct_work *)1;

    (void)arg;
    EXPECT_OK(ct_split_group(group, ct_rank(group) == 0 ? 0 : -1, 0, &part));
    if (ct_rank(group) != 0) {
        EXPECT_ERROR(ct_batch_isend_irecv(part, &op, 1, &work), CT_ERR_NOT_MEMBER, "batch");
        EXPECT(work == NULL);
    }
    EXPECT_OK(ct_destroy_process_group(part));
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_stranger_to_the_group_is_refused(void **state)
{
    (void)state;
    run_ranks(2, not_a_member, NULL);
}

/* Broken groups start nothing either. */
static void aborted(ct_group *group, void *arg)
{
    int32_t value = 0;
    const ct_p2p ops[2] = { give(&value, 1, 0, 0), take(&value, 1, 0, 0) };
    ct_work *works[2] = { (ct_work *)1, (ct_work *)1 };

    (void)arg;
    EXPECT_OK(ct_abort(group));
    EXPECT_STATUS(ct_batch_isend_irecv(group, ops, 2, works), CT_ERR_ABORTED);
    EXPECT(works[0] == NULL && works[1] == NULL);
    EXPECT_STATUS(ct_batch_isend_irecv(group, ops, 2, NULL), CT_ERR_ABORTED);
}

static void an_aborted_group_starts_none(void **state)
{
    (void)state;
    run_ranks(1, aborted, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_mix_of_sends_and_receives_arrives),
        cmocka_unit_test(ranks_are_those_of_the_group),
        cmocka_unit_test(they_match_in_the_order_of_the_list),
        cmocka_unit_test(each_work_says_whose_message_it_got),
        cmocka_unit_test(small_ones_to_one_peer_leave_in_one_write),
        cmocka_unit_test(a_refused_list_has_begun_nothing),
        cmocka_unit_test(a_send_to_oneself_needs_its_receive),
        cmocka_unit_test(a_mismatch_is_named_and_the_others_arrive),
        cmocka_unit_test(one_limit_is_for_the_whole_list),
        cmocka_unit_test(a_stranger_to_the_group_is_refused),
        cmocka_unit_test(an_aborted_group_starts_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
