/* SPDX-License-Identifier: Apache-2.0 */
/* tune.c - which algorithm is the fastest up to which size, on this machine with these ranks.
 *
 * For each operation a group for each of its algorithms, with an override for that one; at each
 * size all that can are measured, in turns so that what else the machine does hits all alike.  An
 * algorithm is left for another only if that is faster by more than the times scatter.  The file is
 * what CT_TUNING reads: a line for each operation. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "bench/ct_bench/bench.h"

enum { MOST_ALGORITHMS = 8, TURNS = 3 };
#define CLEARLY 0.95 /* of the time of the one before */

struct contest {
    struct bench *b;
    const struct operation *operation;
    const char *names[MOST_ALGORITHMS];
    ct_group *groups[MOST_ALGORITHMS];
    double us[MOST_ALGORITHMS]; /* at this size; 0: it can't do it */
    int count;
};

/* All ranks make it, with an override that is not mandatory. */
static ct_status make_group(const struct bench *b, const char *operation, const char *algorithm,
                            ct_group **group)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    char override[128];

    snprintf(override, sizeof override, "%s=%s:1024T", operation, algorithm);
    options.algorithms = override;
    return ct_new_group_with(ct_group_ranks(CT_WORLD), b->ranks, &options, group);
}

static ct_status contest_open(struct contest *c)
{
    ct_status status = CT_OK;
    const char *name;

    while (c->count < MOST_ALGORITHMS && (name = ct_algorithm(c->operation->name, c->count))
           && status == CT_OK) {
        c->names[c->count] = name;
        status = make_group(c->b, c->operation->name, name, &c->groups[c->count]);
        c->count += status == CT_OK;
    }
    return status;
}

static ct_status measure_one(struct contest *c, int i, size_t count)
{
    struct bench *b = c->b;
    struct trial trial = { .operation = c->operation,
                           .shape = bench_shape(b, c->groups[i], count),
                           .in_place = c->operation->in_place == ALWAYS,
                           .room = &b->room };
    struct times times;
    ct_status status;

    if (b->rank == 0)
        progress_case(&b->progress, "%s, %zu x %s, %s", c->operation->name, count,
                      name_of_dtype(b->options.dtype), c->names[i]);
    trial_place(&trial);
    trial_fill(&trial);
    status = measure(&trial, &b->options.effort, b->scratch, &times);
    if (status != CT_OK)
        return status;
    if (strcmp(ct_last_algorithm(c->groups[i]), c->names[i]))
        c->us[i] = 0; /* another stood in for it */
    else if (c->us[i] == 0 || times.p50 < c->us[i])
        c->us[i] = times.p50;
    return CT_OK;
}

/* Of several turns the best counts: what disturbs only adds. */
static ct_status measure_all(struct contest *c, size_t count)
{
    ct_status status = CT_OK;

    memset(c->us, 0, sizeof c->us);
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < c->count && status == CT_OK; i++)
            if (turn == 0 || c->us[i] > 0)
                status = measure_one(c, i, count);
            else
                c->b->progress.of--;
    return status;
}

static int fastest(const struct contest *c, int before)
{
    int best = -1;

    for (int i = 0; i < c->count; i++)
        if (c->us[i] > 0 && (best < 0 || c->us[i] < c->us[best]))
            best = i;
    return before >= 0 && c->us[before] > 0 && c->us[best] > c->us[before] * CLEARLY ? before
                                                                                     : best;
}

static void say(const struct contest *c, size_t bytes, int best)
{
    progress_wipe(&c->b->progress);
    printf("# %s, %zu bytes per rank:", c->operation->name, bytes);
    for (int i = 0; i < c->count; i++)
        if (c->us[i] > 0)
            printf(" %s%s %.4g us", i == best ? "*" : "", c->names[i], c->us[i]);
    printf("\n");
}

/* The override grows by an entry whenever another algorithm becomes the fastest. */
static ct_status run_contest(struct contest *c, char *override, size_t size)
{
    const struct bench *b = c->b;
    int before = -1;
    size_t upto = 0, used = 0;
    ct_status status = CT_OK;

    for (int i = 0; i < b->options.sizes.count && status == CT_OK; i++) {
        const size_t count = bench_count(b, c->operation, b->options.sizes.bytes[i]);
        const size_t bytes = count * ct_dtype_size(b->options.dtype);
        int best;

        if (bytes <= upto) {
            c->b->progress.of -= TURNS * c->count;
            continue;
        }
        status = measure_all(c, count);
        if (status != CT_OK)
            break;
        best = fastest(c, before);
        if (before >= 0 && best != before)
            used +=
                (size_t)snprintf(override + used, size - used, "%s:%zu,", c->names[before], upto);
        before = best;
        upto = bytes;
        if (b->rank == 0)
            say(c, bytes, best);
    }
    snprintf(override + used, size - used, "%s", before >= 0 ? c->names[before] : "");
    return status;
}

static ct_status tune_operation(struct bench *b, const struct operation *operation, FILE *file)
{
    struct contest c = { .b = b, .operation = operation };
    char override[512] = "";
    ct_status status = contest_open(&c);

    if (status == CT_OK && c.count > 1)
        status = run_contest(&c, override, sizeof override);
    if (status == CT_OK && *override && file)
        fprintf(file, "%s = %s\n", operation->name, override);
    for (int i = 0; i < c.count; i++)
        ct_destroy_process_group(c.groups[i]);
    return status;
}

static int wants(const struct bench *b, const struct operation *operation)
{
    return options_want(&b->options, operation->name) && operation->receives != NOBODY
           && ct_algorithm(operation->name, 1);
}

static int count_trials(const struct bench *b)
{
    int trials = 0;

    for (int i = 0; i < operation_count; i++)
        for (int k = 0; wants(b, &operations[i]) && ct_algorithm(operations[i].name, k); k++)
            trials += TURNS * b->options.sizes.count;
    return trials;
}

int bench_tune(struct bench *b)
{
    FILE *file = b->rank == 0 ? fopen(b->options.tune, "we") : NULL;
    int failed = b->rank == 0 && !file;
    char sentence[400];

    snprintf(sentence, sizeof sentence, "%s can't be written: %s", b->options.tune,
             strerror(errno));
    if (failed)
        bench_fails(b, sentence);
    if (ct_broadcast(CT_WORLD, &failed, 1, CT_I32, 0, NULL) != CT_OK)
        failed = bench_fails(b, ct_last_error());
    if (!failed && file)
        fprintf(file, "# by ct_bench --tune, %d ranks; for CT_TUNING\n", b->ranks);
    if (b->rank == 0)
        progress_begin(&b->progress, "ct_bench --tune", count_trials(b));
    for (int i = 0; i < operation_count && !failed; i++)
        if (wants(b, &operations[i]) && tune_operation(b, &operations[i], file) != CT_OK)
            failed = bench_fails(b, ct_last_error());
    progress_wipe(&b->progress);
    if (file && fclose(file) != 0 && !failed)
        failed = bench_fails(b, sentence);
    return failed;
}
