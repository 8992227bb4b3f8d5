/* SPDX-License-Identifier: Apache-2.0 */
/* test_v_and_list.c - the forms with a count per rank and with a pointer per rank.
 *
 * Rank r owns r * unit elements in the v forms (rank 0 none), placed backwards
 * with a gap of three where displacements are given; gaps must stay untouched.
 * What rank r sends to rank j is value(r, j, i). */
#include "tests/marks.h"

#include <stdlib.h>
#include <string.h>

#define GAP 3
#define UNTOUCHED 0x5a5a5a5a

static int32_t value(int from, int to, size_t i)
{
    return from * 1000000 + to * 10000 + (int32_t)(i % 9973);
}

static int32_t *blank(size_t count)
{
    int32_t *a = malloc((count + 1) * sizeof *a);

    memset(a, 0x5a, (count + 1) * sizeof *a);
    return a;
}

static void put(int32_t *at, int from, int to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        at[i] = value(from, to, i);
}

static int has(const int32_t *at, int from, int to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (at[i] != value(from, to, i))
            return 0;
    return 1;
}

static int untouched(const int32_t *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (at[i] != UNTOUCHED)
            return 0;
    return 1;
}

struct layout {
    size_t counts[MAX_RANKS], displs[MAX_RANKS], room;
};

/* Backwards: the last rank's block is the first, each with a gap before it. */
static struct layout backwards(int p, size_t unit)
{
    struct layout l = { .room = 0 };

    for (int r = p - 1; r >= 0; r--) {
        l.counts[r] = (size_t)r * unit;
        l.displs[r] = l.room + GAP;
        l.room += GAP + l.counts[r];
    }
    return l;
}

/* Blocks of all ranks for `to` (-1: for the rank of the block), and the gaps. */
static int layout_holds(const struct layout *l, const int32_t *at, int p)
{
    int right = 1;

    for (int r = 0; r < p; r++)
        right &=
            has(at + l->displs[r], r, 0, l->counts[r]) && untouched(at + l->displs[r] - GAP, GAP);
    return right;
}

/* ---- v forms --------------------------------------------------------------- */

static void gathers_v(ct_group *group, size_t unit)
{
    const int p = ct_size(group), me = ct_rank(group), root = p - 1;
    const struct layout l = backwards(p, unit);
    int32_t *mine = blank(l.counts[me]), *all = blank(l.room);
    size_t packed = 0;

    put(mine, me, 0, l.counts[me]);
    EXPECT_OK(ct_all_gather_v(group, mine, l.counts[me], all, l.counts, l.displs, CT_I32, NULL));
    EXPECT(layout_holds(&l, all, p));
    memset(all, 0x5a, l.room * sizeof *all);
    EXPECT_OK(ct_gather_v(group, mine, l.counts[me], me == root ? all : NULL,
                          me == root ? l.counts : NULL, me == root ? l.displs : NULL, CT_I32, root,
                          NULL));
    EXPECT(me == root ? layout_holds(&l, all, p) : untouched(all, l.room));
    EXPECT_OK(ct_all_gather_v(group, mine, l.counts[me], all, l.counts, NULL, CT_I32, NULL));
    for (int r = 0; r < p; r++) {
        EXPECT(has(all + packed, r, 0, l.counts[r]));
        packed += l.counts[r];
    }
    memset(all, 0x5a, l.room * sizeof *all); /* in place at the root */
    put(all + l.displs[me], me, 0, l.counts[me]);
    EXPECT_OK(ct_gather_v(group, all + l.displs[me], l.counts[me], me == root ? all : NULL,
                          l.counts, l.displs, CT_I32, root, NULL));
    EXPECT(me != root || layout_holds(&l, all, p));
    free(mine);
    free(all);
}

static void scatters_v(ct_group *group, size_t unit)
{
    const int p = ct_size(group), me = ct_rank(group), root = 0;
    const struct layout l = backwards(p, unit);
    int32_t *mine = blank(l.counts[me]), *all = blank(l.room);

    for (int r = 0; r < p && me == root; r++)
        put(all + l.displs[r], root, r, l.counts[r]);
    EXPECT_OK(ct_scatter_v(group, me == root ? all : NULL, me == root ? l.counts : NULL,
                           me == root ? l.displs : NULL, mine, l.counts[me], CT_I32, root, NULL));
    EXPECT(has(mine, root, me, l.counts[me]) && untouched(mine + l.counts[me], 1));
    memset(mine, 0x5a, l.counts[me] * sizeof *mine);
    EXPECT_OK(ct_scatter_v(group, all, l.counts, l.displs, me == root ? all + l.displs[me] : mine,
                           l.counts[me], CT_I32, root, NULL));
    EXPECT(has(me == root ? all + l.displs[me] : mine, root, me, l.counts[me]));
    free(mine);
    free(all);
}

/* Rank r sends (r + j) % 3 * unit to rank j: some nothing, and not to itself the same. */
static void all_to_all_v(ct_group *group, size_t unit)
{
    const int p = ct_size(group), me = ct_rank(group);
    size_t counts[MAX_RANKS], displs[MAX_RANKS], room = 0, packed = 0;
    int32_t *send, *recv;

    for (int j = 0; j < p; j++) {
        counts[j] = (size_t)((me + j) % 3) * unit; /* symmetric: also what j sends to me */
        displs[j] = room + GAP;
        room += GAP + counts[j];
    }
    send = blank(room);
    recv = blank(room);
    for (int j = 0; j < p; j++)
        put(send + displs[j], me, j, counts[j]);
    EXPECT_OK(ct_all_to_all_v(group, send, counts, displs, recv, counts, NULL, CT_I32, NULL));
    for (int j = 0; j < p; j++) {
        EXPECT(has(recv + packed, j, me, counts[j]));
        packed += counts[j];
    }
    EXPECT(untouched(recv + packed, room - packed));
    free(send);
    free(recv);
}

/* Rank r gives r+1 everywhere, so each block is p(p+1)/2. */
static void reduce_scatter_v(ct_group *group, size_t unit)
{
    const int p = ct_size(group), me = ct_rank(group);
    const struct layout l = backwards(p, unit);
    const size_t sum = unit * (size_t)(p * (p - 1) / 2);
    int32_t *send = blank(sum), *recv = blank(l.counts[me]);
    size_t right = 0;

    for (size_t i = 0; i < sum; i++)
        send[i] = me + 1;
    EXPECT_OK(ct_reduce_scatter_v(group, send, recv, l.counts, CT_I32, CT_SUM, NULL));
    for (size_t i = 0; i < l.counts[me]; i++)
        right += recv[i] == p * (p + 1) / 2;
    EXPECT(right == l.counts[me] && untouched(recv + right, 1));
    free(send);
    free(recv);
}

static void v_forms(ct_group *group, void *arg)
{
    static const size_t units[] = { 0, 1, 5, 1000, 40000 };

    (void)arg;
    for (int u = 0; u < 5; u++) {
        gathers_v(group, units[u]);
        scatters_v(group, units[u]);
        all_to_all_v(group, units[u]);
        reduce_scatter_v(group, units[u]);
    }
}

static void v_forms_place_uneven_and_empty_blocks(void **state)
{
    (void)state;
    for (int p = 1; p <= 5; p++)
        run_ranks(p, v_forms, NULL);
}

/* The root expects one element more of rank 1 than that sends.  Rank 1 may have finished its part
 * when the root finds out: then its next call tells it. */
static void other_counts(ct_group *group, void *arg)
{
    const size_t counts[2] = { 2, 4 };
    int32_t mine[4] = { 0 }, all[8];
    ct_status status;

    (void)arg;
    status =
        ct_gather_v(group, mine, ct_rank(group) == 0 ? 2 : 3, all, counts, NULL, CT_I32, 0, NULL);
    if (ct_rank(group) == 1 && status == CT_OK)
        status = ct_barrier(group, NULL);
    EXPECT_ERROR(status, CT_ERR_MISMATCH, "gather_v #1|ranks 0 and 1|different counts");
    all_marked(group, "told");
}

static void a_count_that_differs_on_the_other_side_is_a_mismatch(void **state)
{
    (void)state;
    run_ranks(2, other_counts, NULL);
}

/* ---- Lists ----------------------------------------------------------------- */

static void lists(ct_group *group, size_t n)
{
    const int p = ct_size(group), me = ct_rank(group), root = p / 2;
    int32_t *mine = blank(n), *blocks[MAX_RANKS], *outs[MAX_RANKS];
    const void *gives[MAX_RANKS];
    void *takes[MAX_RANKS];
    size_t right = 0;

    for (int r = 0; r < p; r++) { /* each block is an allocation of its own */
        takes[r] = blocks[r] = blank(n);
        gives[r] = outs[r] = blank(n);
        put(outs[r], me, r, n);
    }
    put(mine, me, 0, n);
    EXPECT_OK(ct_all_gather_list(group, mine, takes, n, CT_I32, NULL));
    for (int r = 0; r < p; r++)
        EXPECT(has(blocks[r], r, 0, n) && untouched(blocks[r] + n, 1));
    for (int r = 0; r < p; r++)
        memset(blocks[r], 0x5a, n * sizeof(int32_t));
    EXPECT_OK(ct_gather_list(group, mine, me == root ? takes : NULL, n, CT_I32, root, NULL));
    for (int r = 0; r < p; r++)
        EXPECT(me == root ? has(blocks[r], r, 0, n) : untouched(blocks[r], n));
    EXPECT_OK(ct_scatter_list(group, me == root ? gives : NULL, mine, n, CT_I32, root, NULL));
    EXPECT(has(mine, root, me, n));
    EXPECT_OK(ct_all_to_all_list(group, gives, takes, n, CT_I32, NULL));
    for (int r = 0; r < p; r++)
        EXPECT(has(blocks[r], r, me, n));
    for (int r = 0; r < p; r++)
        for (size_t i = 0; i < n; i++)
            outs[r][i] = (me + 1) * (r + 1);
    EXPECT_OK(ct_reduce_scatter_list(group, gives, mine, n, CT_I32, CT_SUM, NULL));
    for (size_t i = 0; i < n; i++)
        right += mine[i] == (me + 1) * p * (p + 1) / 2;
    EXPECT(right == n);
    for (int r = 0; r < p; r++) {
        free(blocks[r]);
        free(outs[r]);
    }
    free(mine);
}

static void list_forms(ct_group *group, void *arg)
{
    static const size_t counts[] = { 0, 1, 13, 1000, 70000 };

    (void)arg;
    for (int c = 0; c < 5; c++)
        lists(group, counts[c]);
}

static void list_forms_use_one_buffer_per_rank(void **state)
{
    (void)state;
    for (int p = 1; p <= 5; p++)
        run_ranks(p, list_forms, NULL);
}

/* ---- In place at the root ---------------------------------------------------- */

static void at_the_root(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group), root = p - 1;
    const size_t n = 3000;
    int32_t *all = blank(n * (size_t)p), *own = all + n * (size_t)me;

    (void)arg;
    put(own, me, 0, n);
    EXPECT_OK(ct_gather(group, own, me == root ? all : NULL, n, CT_I32, root, NULL));
    for (int r = 0; r < p && me == root; r++)
        EXPECT(has(all + n * (size_t)r, r, 0, n));
    for (int r = 0; r < p && me == root; r++)
        put(all + n * (size_t)r, root, r, n);
    EXPECT_OK(ct_scatter(group, me == root ? all : NULL, own, n, CT_I32, root, NULL));
    EXPECT(has(own, root, me, n));
    if (me == root && p > 1)
        EXPECT_ERROR(ct_gather(group, all, all, n, CT_I32, root, NULL), CT_ERR_INVALID,
                     "gather|overlap");
    free(all);
}

static void gather_and_scatter_work_in_place_at_the_root(void **state)
{
    (void)state;
    run_ranks(1, at_the_root, NULL);
    run_ranks(4, at_the_root, NULL);
}

/* The rank finds the error before it sends anything, so the group is not broken. */
static void own_counts(ct_group *group, void *arg)
{
    const size_t ones[2] = { 1, 1 };
    int32_t in[2] = { 7, 7 }, out[2] = { 7, 7 };
    const int me = ct_rank(group);

    (void)arg;
    EXPECT_ERROR(ct_all_gather_v(group, in, 2, out, ones, NULL, CT_I32, NULL), CT_ERR_INVALID,
                 "all_gather_v|recv_counts");
    EXPECT_ERROR(ct_gather_v(group, in, 2, out, ones, NULL, CT_I32, me, NULL), CT_ERR_INVALID,
                 "gather_v|recv_counts");
    EXPECT_ERROR(ct_scatter_v(group, in, ones, NULL, out, 2, CT_I32, me, NULL), CT_ERR_INVALID,
                 "scatter_v|send_counts");
    EXPECT_ERROR(
        ct_all_to_all_v(group, in, ones, NULL, out, (const size_t[]){ 2, 2 }, NULL, CT_I32, NULL),
        CT_ERR_INVALID, "all_to_all_v");
    EXPECT(out[0] == 7 && out[1] == 7);
    EXPECT_OK(ct_all_gather_v(group, in, 1, out, ones, NULL, CT_I32, NULL));
}

static void two_counts_of_the_own_block_are_refused(void **state)
{
    (void)state;
    run_ranks(2, own_counts, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v_forms_place_uneven_and_empty_blocks),
        cmocka_unit_test(a_count_that_differs_on_the_other_side_is_a_mismatch),
        cmocka_unit_test(two_counts_of_the_own_block_are_refused),
        cmocka_unit_test(list_forms_use_one_buffer_per_rank),
        cmocka_unit_test(gather_and_scatter_work_in_place_at_the_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
