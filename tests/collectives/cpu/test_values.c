/* SPDX-License-Identifier: Apache-2.0 */
/* test_values.c - each collective gives the values ct.h promises: every world
 * size, both links, processes and threads, counts 0, 1, odd and larger than any
 * internal buffer, a root that moves. */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t small_counts[] = { 0, 1, 7, 1025 };
static const size_t large_counts[] = { (3u << 20) / 4 + 7 };

struct counts {
    const size_t *values;
    int n;
};
static struct counts small = { small_counts, 4 }, large = { large_counts, 1 };

/* What rank r gives at i: different for neighbours, small enough for sums. */
static int32_t given(int r, size_t i)
{
    return (r + 1) * (int32_t)(i % 1000 + 1);
}

static int32_t *fill(int r, size_t count)
{
    int32_t *a = malloc((count + 1) * sizeof *a);

    for (size_t i = 0; i < count; i++)
        a[i] = given(r, i);
    return a;
}

static int32_t *blank(size_t count)
{
    int32_t *a = malloc((count + 1) * sizeof *a);

    memset(a, 0x5a, (count + 1) * sizeof *a);
    return a;
}

/* Every a[i] is factor * (i % 1000 + 1). */
static int holds(const int32_t *a, size_t count, int32_t factor)
{
    for (size_t i = 0; i < count; i++)
        if (a[i] != factor * (int32_t)(i % 1000 + 1))
            return 0;
    return 1;
}

static int is_blank(const int32_t *a, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (a[i] != 0x5a5a5a5a)
            return 0;
    return 1;
}

/* Rank r gives r+1 times a row: the sum is p(p+1)/2 times the row. */
static void reductions(ct_group *group, size_t n)
{
    const int p = ct_size(group), me = ct_rank(group), root = (int)(n % (size_t)p);
    const int32_t sum = p * (p + 1) / 2;
    int32_t *send = fill(me, n), *recv = blank(n);

    EXPECT_OK(ct_all_reduce(group, send, recv, n, CT_I32, CT_SUM, NULL));
    EXPECT(holds(recv, n, sum));
    EXPECT(holds(send, n, me + 1));
    memset(recv, 0x5a, n * sizeof *recv);
    EXPECT_OK(ct_reduce(group, send, recv, n, CT_I32, CT_SUM, root, NULL));
    EXPECT(me == root ? holds(recv, n, sum) : is_blank(recv, n));
    EXPECT(holds(send, n, me + 1));
    EXPECT_OK(ct_reduce(group, send, me == root ? send : NULL, n, CT_I32, CT_MAX, root, NULL));
    EXPECT(holds(send, n, me == root ? p : me + 1));
    EXPECT_OK(ct_all_reduce(group, send, send, n, CT_I32, CT_MIN, NULL));
    EXPECT(p == 1 || holds(send, n, root == 0 ? 2 : 1));
    free(send);
    free(recv);
}

/* Block b of rank r starts at given(r, b * n): its owner gets the sum of all. */
static void scattered_sums(ct_group *group, size_t n)
{
    const int p = ct_size(group), me = ct_rank(group);
    int32_t *send = fill(me, (size_t)p * n), *recv = blank(n), *own = send + (size_t)me * n;
    int right = 1;

    EXPECT_OK(ct_reduce_scatter(group, send, recv, n, CT_I32, CT_SUM, NULL));
    EXPECT(holds(send, (size_t)p * n, me + 1));
    EXPECT_OK(ct_reduce_scatter(group, send, own, n, CT_I32, CT_SUM, NULL));
    for (size_t i = 0; i < n; i++) {
        const int32_t sum = p * (p + 1) / 2 * given(0, (size_t)me * n + i);

        right &= recv[i] == sum && own[i] == sum;
    }
    EXPECT(right);
    free(send);
    free(recv);
}

/* Rank r gives r+1 times a row; block r of what is gathered is that. */
static void gathers(ct_group *group, size_t n)
{
    const int p = ct_size(group), me = ct_rank(group), root = p - 1;
    int32_t *send = fill(me, n), *recv = blank((size_t)p * n);
    const size_t whole = (size_t)p * n, bytes = n * sizeof *send;

    EXPECT_OK(ct_all_gather(group, send, recv, n, CT_I32, NULL));
    for (int r = 0; r < p; r++)
        EXPECT(holds(recv + (size_t)r * n, n, r + 1));
    memset(recv, 0x5a, whole * sizeof *recv);
    memcpy(recv + (size_t)me * n, send, bytes);
    EXPECT_OK(ct_all_gather(group, recv + (size_t)me * n, recv, n, CT_I32, NULL));
    for (int r = 0; r < p; r++)
        EXPECT(holds(recv + (size_t)r * n, n, r + 1));
    memset(recv, 0x5a, whole * sizeof *recv);
    EXPECT_OK(ct_gather(group, send, me == root ? recv : NULL, n, CT_I32, root, NULL));
    for (int r = 0; r < p; r++)
        EXPECT(me != root ? is_blank(recv, whole) : holds(recv + (size_t)r * n, n, r + 1));
    free(send);
    free(recv);
}

static void from_the_root(ct_group *group, size_t n)
{
    const int p = ct_size(group), me = ct_rank(group), root = p / 2;
    int32_t *buf = me == root ? fill(root, n) : blank(n);
    int32_t *send = me == root ? malloc(((size_t)p * n + 1) * sizeof *send) : NULL;

    EXPECT_OK(ct_broadcast(group, buf, n, CT_I32, root, NULL));
    EXPECT(holds(buf, n, root + 1));
    for (size_t i = 0; send && i < (size_t)p * n; i++)
        send[i] = given((int)(i / n), i % n);
    EXPECT_OK(ct_scatter(group, send, buf, n, CT_I32, root, NULL));
    EXPECT(holds(buf, n, me + 1));
    free(send);
    free(buf);
}

/* Block j of rank i is p * i + j + 1 times a row, so rank j gets block i of that. */
static void everyone_to_everyone(ct_group *group, size_t n)
{
    const int p = ct_size(group), me = ct_rank(group);
    int32_t *send = blank((size_t)p * n), *recv = blank((size_t)p * n);

    for (size_t i = 0; i < (size_t)p * n; i++)
        send[i] = given(p * me + (int)(i / n), i % n);
    EXPECT_OK(ct_all_to_all(group, send, recv, n, CT_I32, NULL));
    EXPECT_OK(ct_all_to_all(group, send, send, n, CT_I32, NULL));
    for (int r = 0; r < p; r++)
        EXPECT(holds(recv + (size_t)r * n, n, p * r + me + 1)
               && holds(send + (size_t)r * n, n, p * r + me + 1));
    free(send);
    free(recv);
}

static void all_operations(ct_group *group, void *arg)
{
    const struct counts *counts = arg;

    for (int c = 0; c < counts->n; c++) {
        reductions(group, counts->values[c]);
        scattered_sums(group, counts->values[c]);
        gathers(group, counts->values[c]);
        from_the_root(group, counts->values[c]);
        everyone_to_everyone(group, counts->values[c]);
        EXPECT_OK(ct_barrier(group, NULL));
    }
}

static void every_collective_is_right_at_every_world_size(void **state)
{
    (void)state;
    run_sizes(all_operations, &small);
}

static void every_collective_is_right_beyond_the_internal_buffers(void **state)
{
    (void)state;
    run_ranks(2, all_operations, &large);
    run_ranks(3, all_operations, &large);
}

/* The root of a scatter writes to the slots of all, each time another one is: what a rank has not
 * read yet must stay, whatever the others do next. */
static void scatters_in_a_row(ct_group *group, void *arg)
{
    const size_t n = *(size_t *)arg;
    const int p = ct_size(group), me = ct_rank(group);
    int32_t *all = blank((size_t)p * n), *own = blank(n);

    for (int k = 0; k < 5 * p; k++) {
        const int root = k % p;

        for (size_t i = 0; me == root && i < (size_t)p * n; i++)
            all[i] = given((int)(i / n) + k, i % n);
        EXPECT_OK(ct_scatter(group, all, own, n, CT_I32, root, NULL));
        EXPECT(holds(own, n, me + k + 1));
        if (k % 5 == 0) {
            EXPECT_OK(ct_all_gather(group, own, all, n, CT_I32, NULL));
            for (int r = 0; r < p; r++)
                EXPECT(holds(all + (size_t)r * n, n, r + k + 1));
        }
    }
    free(all);
    free(own);
}

/* One rank says that it is there, and reads long after: time for the others to get as far as they
 * may. */
static void run_with_late_readers(int p, size_t n)
{
    char fault[64];

    for (int late = 0; late < p; late++) {
        snprintf(fault, sizeof fault, "rank:%d,phase:1,every,delay:2ms", late);
        setenv("CT_FAULT", fault, 1);
        run_ranks(p, scatters_in_a_row, &n);
    }
    unsetenv("CT_FAULT");
}

static void scatters_in_a_row_leave_each_its_own_block(void **state)
{
    (void)state;
    run_with_late_readers(4, 100);
    run_with_late_readers(3, ((size_t)800 << 10) / sizeof(int32_t)); /* several slots' */
}

/* Slots of all sizes follow each other, 24 MiB of them, while their memory grows; with one rank
 * that reads late in each. */
static void sizes_in_a_row(ct_group *group, void *arg)
{
    enum { CALLS = 240, MOST = (200 << 10) / sizeof(int32_t) };
    const int p = ct_size(group), me = ct_rank(group);
    int32_t *own = blank(MOST), *all = blank((size_t)p * MOST);

    (void)arg;
    for (int k = 0; k < CALLS; k++) {
        const size_t n = 1 + (size_t)k * 7919 % (k % 3 == 0 ? 1500 : MOST);

        for (size_t i = 0; i < n; i++)
            own[i] = given(me + k, i);
        EXPECT_OK(ct_all_gather(group, own, all, n, CT_I32, NULL));
        for (int r = 0; r < p; r++)
            if (!EXPECT(holds(all + (size_t)r * n, n, r + k + 1)))
                return;
    }
    free(own);
    free(all);
}

static void slots_of_all_sizes_in_a_row_hold_what_was_shown(void **state)
{
    (void)state;
    for (int p = 2; p <= 5; p++) {
        setenv("CT_FAULT", "rank:1,phase:1,every,delay:1ms", 1);
        run_ranks(p, sizes_in_a_row, NULL);
        unsetenv("CT_FAULT");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_is_right_at_every_world_size),
        cmocka_unit_test(every_collective_is_right_beyond_the_internal_buffers),
        cmocka_unit_test(scatters_in_a_row_leave_each_its_own_block),
        cmocka_unit_test(slots_of_all_sizes_in_a_row_hold_what_was_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
