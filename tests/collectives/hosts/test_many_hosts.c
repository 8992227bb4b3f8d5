/* SPDX-License-Identifier: Apache-2.0 */
/* test_many_hosts.c - groups over up to twelve hosts: each row that goes by hosts gives the bits of
 * the written order, for every layout, also beyond slots and pieces. */
#include "tests/collectives/reference.h"
#include "tests/harness.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST_HOSTS = 12, LARGE = (9 << 20) / 4 + 3 }; /* elements: beyond a piece of 8 MiB */

struct layout {
    const char *hosts; /* as CT_FAULT has them */
    int host[MOST_HOSTS], p;
};

static const struct layout layouts[] = {
    { "hosts:0.0.1.1", { 0, 0, 1, 1 }, 4 },
    { "hosts:0.1.2", { 0, 1, 2 }, 3 },
    { "hosts:0.1.0.2.2.2", { 0, 1, 0, 2, 2, 2 }, 6 },
    { "hosts:0.1.2.3.4.5.6", { 0, 1, 2, 3, 4, 5, 6 }, 7 },
    { "hosts:0.1.2.3.0.1.2.3", { 0, 1, 2, 3, 0, 1, 2, 3 }, 8 },
    { "hosts:0.1.2.3.4.5.6.7.8.9.10.11", { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, 12 },
};

static const struct layout *layout;

/* What rank r gives: fractions whose sum shows its order. */
static void fill(float *values, size_t count, int r)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)((i * 7 + (size_t)r * 131) % 1009) / 3.0f * (float)(1 << (r + i) % 11);
}

static float *all_inputs(size_t count, const void **inputs)
{
    float *values = malloc((size_t)layout->p * count * sizeof *values);

    for (int r = 0; r < layout->p; r++) {
        inputs[r] = values + (size_t)r * count;
        fill(values + (size_t)r * count, count, r);
    }
    return values;
}

static int same(const float *got, const float *wanted, size_t count)
{
    return !memcmp(got, wanted, count * sizeof *got);
}

/* Of many elements every 61st is looked at, since the reference takes its time; the first and the
 * last are among them. */
static size_t looked_at(size_t count, size_t i)
{
    return count > 100000 && i + 1 < (count + 60) / 61 ? i * 61 : count > 100000 ? count - 1 : i;
}

static float *reference(const void *const *inputs, size_t count, ct_op op)
{
    const size_t some = count > 100000 ? (count + 60) / 61 : count;
    float *values = malloc(((size_t)layout->p + 1) * (some + 1) * sizeof *values);
    const void *rows[MOST_HOSTS];

    for (int r = 0; r < layout->p; r++) {
        rows[r] = values + ((size_t)r + 1) * some;
        for (size_t i = 0; i < some; i++)
            ((float *)(uintptr_t)rows[r])[i] = ((const float *)inputs[r])[looked_at(count, i)];
    }
    reference_reduce(CT_F32, op, values, rows, layout->host, layout->p, some);
    return values;
}

/* got: elements first to first + n of the result of `count`. */
static int is_result(const float *got, const float *wanted, size_t count, size_t first, size_t n)
{
    const size_t some = count > 100000 ? (count + 60) / 61 : count;

    for (size_t i = 0; i < some; i++) {
        const size_t at = looked_at(count, i);

        if (at >= first && at < first + n && memcmp(&got[at - first], &wanted[i], sizeof *got))
            return 0;
    }
    return 1;
}

static void reductions(ct_group *group, size_t count, ct_op op)
{
    const int p = ct_size(group), me = ct_rank(group);
    const void *inputs[MOST_HOSTS];
    float *values = all_inputs(count, inputs), *wanted = reference(inputs, count, op);
    float *got = calloc(count + 1, sizeof *got);

    EXPECT_OK(ct_all_reduce(group, inputs[me], got, count, CT_F32, op, NULL));
    EXPECT(is_result(got, wanted, count, 0, count));
    for (int root = 0; root<p; root += count> 100000 ? 2 : 1) {
        memset(got, 0, count * sizeof *got);
        EXPECT_OK(ct_reduce(group, inputs[me], got, count, CT_F32, op, root, NULL));
        EXPECT(me != root || is_result(got, wanted, count, 0, count));
    }
    memcpy(got, inputs[me], count * sizeof *got);
    EXPECT_OK(ct_all_reduce(group, got, got, count, CT_F32, op, NULL));
    EXPECT(is_result(got, wanted, count, 0, count));
    if (count % (size_t)p == 0) {
        const size_t block = count / (size_t)p;

        memset(got, 0, count * sizeof *got);
        EXPECT_OK(ct_reduce_scatter(group, inputs[me], got, block, CT_F32, op, NULL));
        EXPECT(is_result(got, wanted, count, (size_t)me * block, block));
    }
    free(values);
    free(wanted);
    free(got);
}

static void copies(ct_group *group, size_t count)
{
    const int p = ct_size(group), me = ct_rank(group);
    const void *inputs[MOST_HOSTS];
    float *values = all_inputs(count, inputs);
    float *got = malloc((size_t)p * (count + 1) * sizeof *got);

    EXPECT_OK(ct_all_gather(group, inputs[me], got, count, CT_F32, NULL));
    EXPECT(same(got, values, (size_t)p * count));
    for (int root = 0; root<p; root += count> 100000 ? 2 : 1) {
        if (me == root)
            memcpy(got, inputs[me], count * sizeof *got);
        else
            memset(got, 0, count * sizeof *got);
        EXPECT_OK(ct_broadcast(group, got, count, CT_F32, root, NULL));
        EXPECT(same(got, inputs[root], count));
    }
    EXPECT_OK(ct_barrier(group, NULL));
    free(values);
    free(got);
}

/* Also in place. */
static void all_to_all(ct_group *group, size_t count)
{
    const int p = ct_size(group), me = ct_rank(group);
    const size_t all = (size_t)p * count;
    float *sent = malloc((all + 1) * sizeof *sent), *got = malloc((all + 1) * sizeof *got);
    float *wanted = malloc((all + 1) * sizeof *wanted);

    fill(sent, all, me);
    for (int r = 0; r < p; r++) {
        fill(got, all, r);
        memcpy(wanted + (size_t)r * count, got + (size_t)me * count, count * sizeof *got);
    }
    EXPECT_OK(ct_all_to_all(group, sent, got, count, CT_F32, NULL));
    EXPECT(same(got, wanted, all));
    EXPECT_OK(ct_all_to_all(group, sent, sent, count, CT_F32, NULL));
    EXPECT(same(sent, wanted, all));
    free(sent);
    free(got);
    free(wanted);
}

/* To and from a root. */
static void rooted(ct_group *group, size_t count)
{
    const int p = ct_size(group), me = ct_rank(group), root = (int)(count % (size_t)p);
    const void *inputs[MOST_HOSTS];
    float *values = all_inputs(count, inputs);
    float *got = calloc((size_t)p * (count + 1), sizeof *got);

    EXPECT_OK(ct_gather(group, inputs[me], me == root ? got : NULL, count, CT_F32, root, NULL));
    EXPECT(me != root || same(got, values, (size_t)p * count));
    memset(got, 0, count * sizeof *got);
    EXPECT_OK(ct_scatter(group, me == root ? values : NULL, got, count, CT_F32, root, NULL));
    EXPECT(same(got, inputs[me], count));
    free(values);
    free(got);
}

static void v_forms(ct_group *group)
{
    const int p = ct_size(group), me = ct_rank(group);
    size_t counts[MOST_HOSTS], total = 0, before = 0;
    const void *inputs[MOST_HOSTS];
    float *values, *wanted, *got;

    for (int r = 0; r < p; r++) {
        counts[r] = (size_t)r * 1000 % 7001;
        total += counts[r];
        before += r < me ? counts[r] : 0;
    }
    values = all_inputs(total, inputs);
    wanted = malloc((total + 1) * sizeof *wanted);
    got = calloc(total + 1, sizeof *got);
    reference_reduce(CT_F32, CT_SUM, wanted, inputs, layout->host, p, total);
    EXPECT_OK(ct_reduce_scatter_v(group, inputs[me], got, counts, CT_F32, CT_SUM, NULL));
    EXPECT(same(got, wanted + before, counts[me]));
    EXPECT_OK(ct_all_gather_v(group, (const float *)inputs[0] + before, counts[me], got, counts,
                              NULL, CT_F32, NULL));
    EXPECT(same(got, inputs[0], total));
    free(values);
    free(wanted);
    free(got);
}

/* Partial results travel in f32 and in 64 bits: the result is rounded once. */
static void wide_partials(ct_group *group, size_t count, ct_dtype dtype, ct_op op)
{
    const int p = ct_size(group), me = ct_rank(group);
    const size_t element = ct_dtype_size(dtype), block = count / (size_t)p;
    const void *inputs[MOST_HOSTS];
    char *values = malloc(((size_t)p + 2) * (count + 1) * element);
    char *wanted = values + (size_t)p * count * element, *got = wanted + (count + 1) * element;

    for (size_t i = 0; i < (size_t)p * count; i++)
        if (dtype == CT_I16)
            ((int16_t *)(void *)values)[i] = (int16_t)(i * 7919 % 65521);
        else
            reference_put(dtype, values, i, (unsigned)(i * 37 % REFERENCE_VALUES), 0);
    for (int r = 0; r < p; r++)
        inputs[r] = values + (size_t)r * count * element;
    reference_reduce(dtype, op, wanted, inputs, layout->host, p, count);
    EXPECT_OK(ct_all_reduce(group, inputs[me], got, count, dtype, op, NULL));
    EXPECT(!memcmp(got, wanted, count * element));
    EXPECT_OK(ct_reduce(group, inputs[me], got, count, dtype, op, p - 1, NULL));
    EXPECT(me != p - 1 || !memcmp(got, wanted, count * element));
    EXPECT_OK(ct_reduce_scatter(group, inputs[me], got, block, dtype, op, NULL));
    if (count % (size_t)p == 0)
        EXPECT(!memcmp(got, wanted + (size_t)me * block * element, block * element));
    free(values);
}

static void small_and_middle(ct_group *group, void *arg)
{
    static const size_t counts[] = { 0, 1, 24, 1009, 7 * 24 * 30, 70 * 1009 };

    (void)arg;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        reductions(group, counts[i], i % 2 ? CT_SUM : CT_AVG);
        copies(group, counts[i]);
        rooted(group, counts[i]);
        all_to_all(group, counts[i]);
        wide_partials(group, counts[i], CT_BF16, i % 2 ? CT_AVG : CT_SUM);
    }
    wide_partials(group, 24 * 1009, CT_F8E4M3, CT_SUM);
    wide_partials(group, 24 * 1009, CT_I16, CT_AVG);
    v_forms(group);
}

static void large(ct_group *group, void *arg)
{
    (void)arg;
    reductions(group, LARGE, CT_SUM);
    reductions(group, (size_t)(1 << 20) / 24 * 24, CT_AVG);
    copies(group, LARGE);
}

/* ---- Rows ------------------------------------------------------------------------- */

static const char *const operations[][2] = {
    { "all_reduce", "CT_ALL_REDUCE" },
    { "reduce", "CT_REDUCE" },
    { "broadcast", "CT_BROADCAST" },
    { "all_gather", "CT_ALL_GATHER" },
    { "reduce_scatter", "CT_REDUCE_SCATTER" },
    { "gather", "CT_GATHER" },
    { "scatter", "CT_SCATTER" },
    { "all_to_all", "CT_ALL_TO_ALL" },
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* Each operation's n-th row for hosts.  0: none has so many. */
static int force_rows(int n)
{
    int any = 0;

    for (int o = 0; o < OPERATIONS; o++) {
        char text[64] = "";
        const char *name;
        int nodes = 0;

        for (int row = 0; (name = ct_algorithm(operations[o][0], row)); row++)
            if (!strncmp(name, "nodes", 5) && nodes++ == n)
                snprintf(text, sizeof text, "%s:1T", name); /* where it can't, another does */
        setenv(operations[o][1], text, 1);
        any |= text[0] != 0;
    }
    return any;
}

static void run_layouts(rank_body *body)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        layout = &layouts[i];
        setenv("CT_FAULT", layout->hosts, 1);
        use_link(i % 2 ? "tcp" : NULL); /* tcp: no slots on a host either */
        run_processes(layout->p, body, NULL);
    }
    use_link(NULL);
    unsetenv("CT_FAULT");
}

static void every_row_by_hosts_keeps_the_written_order(void **state)
{
    (void)state;
    for (int row = 0; force_rows(row); row++)
        run_layouts(small_and_middle);
    run_layouts(small_and_middle); /* by the model */
}

static void rows_by_hosts_are_right_beyond_their_pieces(void **state)
{
    (void)state;
    for (int row = 0; force_rows(row); row++)
        for (size_t i = 0; i < 3; i++) {
            layout = &layouts[i];
            setenv("CT_FAULT", layout->hosts, 1);
            run_processes(layout->p, large, NULL);
        }
    unsetenv("CT_FAULT");
}

/* So many ranks on a host that they have no connections to each other yet. */
enum { MANY_HERE = 34, MANY = MANY_HERE + 2, LATE = 5 };

static _Atomic int *first_is_back; /* in memory that the ranks share */

static void one_gives_up(ct_group *group, void *arg)
{
    const int me = ct_rank(group);
    int32_t value = 1;

    (void)arg;
    if (me == LATE) {
        EXPECT_OK(ct_set_next_timeout(group, 300));
        EXPECT_ERROR(ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, NULL), CT_ERR_TIMEOUT,
                     "timed out");
        return;
    }
    while (me >= MANY_HERE && !atomic_load(first_is_back))
        sched_yield();
    if (me >= MANY_HERE) /* rank 0 had sent them all that this call needs, or not */
        ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, NULL);
    EXPECT_ERROR(ct_all_reduce(group, &value, &value, 1, CT_I32, CT_SUM, NULL), CT_ERR_PEER,
                 "rank 5");
    if (me == 0)
        atomic_store(first_is_back, 1);
}

/* Rank 0 waits for the other host alone, whose ranks come when it has returned. */
static void a_rank_that_waits_for_another_host_learns_of_a_failure_on_its_own(void **state)
{
    char hosts[4 * MANY] = "hosts:0";

    (void)state;
    force_rows(99);
    for (int r = 1; r < MANY; r++)
        strcat(hosts, r < MANY_HERE ? ".0" : ".1");
    first_is_back = mmap(NULL, sizeof *first_is_back, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    setenv("CT_FAULT", hosts, 1);
    run_processes(MANY, one_gives_up, NULL);
    unsetenv("CT_FAULT");
    munmap((void *)(uintptr_t)first_is_back, sizeof *first_is_back);
}

static void network_is_read(ct_group *group, void *arg)
{
    float value = 1;

    (void)arg;
    EXPECT_OK(ct_all_reduce(group, &value, &value, 1, CT_F32, CT_SUM, NULL));
    EXPECT(!strcmp(ct_last_algorithm(group), "nodes_doubling"));
}

/* Where a message more costs much, log2(h) steps are less than one to all. */
static void the_model_follows_the_network(void **state)
{
    (void)state;
    force_rows(99);
    layout = &layouts[4];
    setenv("CT_FAULT", layout->hosts, 1);
    setenv("CT_NETWORK", "10us,1GB/s,100us", 1);
    run_processes(layout->p, network_is_read, NULL);
    unsetenv("CT_NETWORK");
    unsetenv("CT_FAULT");
}

static void a_network_that_is_none_is_refused(void **state)
{
    static const char *const wrong[] = { "fast",         "10us",        "0us,1GB/s",  "10us,1GB/s,",
                                         "10us,1GB/s,5", "10us,-1GB/s", "nanus,1GB/s" };
    ct_store *store;

    (void)state;
    EXPECT_OK(ct_store_hash(&store));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ct_group *group = NULL;

        setenv("CT_NETWORK", wrong[i], 1);
        EXPECT_ERROR(ct_create_group(store, 0, 1, NULL, &group), CT_ERR_INVALID,
                     "is not a network; use a latency and a bandwidth such as 30us,1.2GB/s");
    }
    unsetenv("CT_NETWORK");
    EXPECT_OK(ct_store_close(store));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_by_hosts_keeps_the_written_order),
        cmocka_unit_test(rows_by_hosts_are_right_beyond_their_pieces),
        cmocka_unit_test(a_rank_that_waits_for_another_host_learns_of_a_failure_on_its_own),
        cmocka_unit_test(the_model_follows_the_network),
        cmocka_unit_test(a_network_that_is_none_is_refused),
    };

    reference_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
