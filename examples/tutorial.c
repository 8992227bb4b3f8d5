/* SPDX-License-Identifier: Apache-2.0 */
/* tutorial.c - the six cases of PyTorch's "Writing Distributed Applications".
 *
 *     ctrun --nproc-per-node=4 build/bin/tutorial     started by the launcher
 *     build/bin/tutorial --spawn 4                    starts its ranks itself
 *
 * Each case creates a group of all ranks and works on one float per rank, which is r + 1 on
 * rank r.  Then rank 0 prints what each rank has. */
#include <ct.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static ct_group *group;

static void check(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "tutorial: rank %d: %s\n", rank, ct_last_error());
    exit(1);
}

static float *floats(int count)
{
    float *memory = calloc((size_t)count, sizeof *memory);

    if (!memory) {
        fprintf(stderr, "tutorial: rank %d: out of memory\n", rank);
        exit(1);
    }
    return memory;
}

static void begin(void)
{
    int *all = malloc((size_t)size * sizeof *all);

    for (int i = 0; i < size && all; i++)
        all[i] = i;
    check(ct_new_group(all, size, &group));
    free(all);
}

/* One line: the case, and `count` floats of each rank. */
static void show(const char *what, const float *mine, int count)
{
    float *all = rank == 0 ? floats(size * count) : NULL;

    check(ct_gather(group, mine, all, (size_t)count, CT_F32, 0, NULL));
    if (rank == 0)
        printf("%-22s", what);
    for (int r = 0; r < size && all; r++) {
        printf("  rank %d:", r);
        for (int i = 0; i < count; i++)
            printf(" %g", all[r * count + i]);
    }
    if (rank == 0)
        printf("\n");
    free(all);
    check(ct_destroy_process_group(group));
}

static const struct {
    const char *name;
    ct_op op;
} ops[] = { { "SUM", CT_SUM }, { "PRODUCT", CT_PRODUCT }, { "MIN", CT_MIN }, { "MAX", CT_MAX } };

static void reduce_and_all_reduce(void)
{
    char what[32];

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        float x = (float)(rank + 1), result = x; /* only the root's changes */

        begin();
        check(ct_reduce(group, &x, &result, 1, CT_F32, ops[i].op, 0, NULL));
        snprintf(what, sizeof what, "reduce %s to 0", ops[i].name);
        show(what, &result, 1);
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        float x = (float)(rank + 1);

        begin();
        check(ct_all_reduce(group, &x, &x, 1, CT_F32, ops[i].op, NULL));
        snprintf(what, sizeof what, "all_reduce %s", ops[i].name);
        show(what, &x, 1);
    }
}

static void scatter(void)
{
    float x = 0, *all = rank == 0 ? floats(size) : NULL;

    begin();
    for (int i = 0; i < size && all; i++)
        all[i] = (float)(i + 1);
    check(ct_scatter(group, all, &x, 1, CT_F32, 0, NULL));
    show("scatter from 0", &x, 1);
    free(all);
}

static void gather(void)
{
    float x = (float)(rank + 1), *all = floats(size);

    begin();
    check(ct_gather(group, &x, all, 1, CT_F32, 0, NULL));
    show("gather to 0", all, size);
    free(all);
}

static void all_gather(void)
{
    float x = (float)(rank + 1), *all = floats(size);

    begin();
    check(ct_all_gather(group, &x, all, 1, CT_F32, NULL));
    show("all_gather", all, size);
    free(all);
}

static void broadcast(void)
{
    float x = (float)(rank + 1);

    begin();
    check(ct_broadcast(group, &x, 1, CT_F32, 0, NULL));
    show("broadcast from 0", &x, 1);
}

/* What every rank runs, however it was started. */
static int run(int unused_rank, int unused_size, void *arg)
{
    (void)unused_rank;
    (void)unused_size;
    (void)arg;
    check(ct_init_process_group(NULL));
    rank = ct_rank(CT_WORLD);
    size = ct_size(CT_WORLD);
    reduce_and_all_reduce();
    scatter();
    gather();
    all_gather();
    broadcast();
    check(ct_destroy_process_group(CT_WORLD));
    return 0;
}

int main(int argc, char **argv)
{
    int code, ranks = 4;

    if (argc == 1 && getenv("RANK"))
        return run(0, 0, NULL);
    if (argc == 3 && !strcmp(argv[1], "--spawn"))
        ranks = atoi(argv[2]);
    else if (argc != 1) {
        fprintf(stderr, "usage: tutorial [--spawn RANKS]\n");
        return 2;
    }
    code = ct_spawn(ranks, run, NULL);
    if (code != 0)
        fprintf(stderr, "tutorial: %s\n", ct_last_error());
    return code < 0 ? 1 : code;
}
