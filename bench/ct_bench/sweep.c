/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - the rows: operations, sizes, out of place and in place. */
#include <math.h>
#include <stdint.h>

#include "bench/ct_bench/bench.h"

/* On rank 0, which alone knows the limits. */
static void report_trial(struct bench *b, const struct trial *trial, const struct times *times,
                         int64_t wrong, const char *algorithm)
{
    const struct operation *operation = trial->operation;
    const size_t bytes = trial->shape.count * ct_dtype_size(b->options.dtype)
                         * (size_t)operation_blocks(operation, b->ranks);
    const double limit =
        b->options.limits ? limits_of(&b->limits, operation, (double)bytes, trial->in_place) : NAN;
    const double algbw = (double)bytes / times->p50 / 1e3;
    const struct row row = { .operation = operation->name,
                             .type = name_of_dtype(b->options.dtype),
                             .redop = operation->reduces ? name_of_op(b->options.op) : "none",
                             .place = trial->in_place ? "in" : "out",
                             .bytes = (int64_t)bytes,
                             .count = (int64_t)trial->shape.count,
                             .root = operation->rooted ? b->options.root : -1,
                             .wrong = wrong,
                             .p50 = times->p50,
                             .p99 = times->p99,
                             .min = times->min,
                             .algbw = algbw,
                             .busbw = algbw * operation->bus(b->ranks),
                             .limit = limit,
                             .ratio = limit > 0 ? times->p50 / limit : NAN,
                             .model = b->options.model ? model_of(operation->name, algorithm,
                                                                  (double)bytes, b->ranks, b->wire)
                                                       : NAN,
                             .rank_p50 = times->rank_p50,
                             .rank_p99 = times->rank_p99,
                             .mean = times->mean,
                             .samples = times->samples,
                             .calls = times->calls };

    progress_wipe(&b->progress);
    report_row(&b->report, &row);
}

/* Checked before the time is taken and after it: what calls in a row leave behind counts too. */
static ct_status run_trial(struct bench *b, struct trial *trial)
{
    struct times times;
    int64_t before = 0, after = 0;
    const char *algorithm = NULL;
    ct_status status = CT_OK;

    trial_place(trial);
    trial_fill(trial);
    if (b->options.model) { /* what measures and checks makes calls of its own */
        status = trial_call(trial);
        algorithm = ct_last_algorithm(CT_WORLD);
    }
    if (status == CT_OK && b->options.check)
        status = trial_check(trial, &before);
    if (status == CT_OK)
        status = measure(trial, &b->options.effort, b->scratch, &times);
    if (status == CT_OK && b->options.check)
        status = trial_check(trial, &after);
    b->wrong += before + after;
    if (status == CT_OK && b->rank == 0)
        report_trial(b, trial, &times, b->options.check ? before + after : NOT_CHECKED, algorithm);
    return status;
}

struct shape bench_shape(const struct bench *b, ct_group *group, size_t count)
{
    return (struct shape){ .group = group,
                           .rank = b->rank,
                           .ranks = b->ranks,
                           .count = count,
                           .dtype = b->options.dtype,
                           .op = b->options.op,
                           .root = b->options.root };
}

/* What has one form only is measured in that one, whatever was asked for. */
static int has_place(const struct bench *b, const struct operation *operation, int in_place)
{
    const int one_buffer = operation->in_place == ALWAYS, never = operation->in_place == NEVER;

    if (one_buffer || never)
        return in_place == one_buffer;
    return in_place ? b->options.in_place : b->options.out_of_place;
}

static ct_status run_places(struct bench *b, const struct operation *operation, size_t count)
{
    ct_status status = CT_OK;

    for (int in_place = 0; in_place <= 1 && status == CT_OK; in_place++) {
        struct trial trial = { .operation = operation,
                               .shape = bench_shape(b, CT_WORLD, count),
                               .in_place = in_place,
                               .room = &b->room };

        if (!has_place(b, operation, in_place))
            continue;
        if (b->rank == 0)
            progress_case(&b->progress, "%s, %zu x %s", operation->name, count,
                          name_of_dtype(b->options.dtype));
        status = run_trial(b, &trial);
    }
    return status;
}

/* At least one element in each block: a size that is too small becomes the least one. */
size_t bench_count(const struct bench *b, const struct operation *operation, size_t bytes)
{
    const size_t blocks = (size_t)operation_blocks(operation, b->ranks);
    const size_t count = bytes / ct_dtype_size(b->options.dtype) / blocks;

    return operation->receives == NOBODY ? 0 : count > 0 ? count : 1;
}

/* Is there a row for size i?  Several small sizes may be one count; a barrier has no size. */
static int is_new_count(const struct bench *b, const struct operation *operation, int i)
{
    const size_t *bytes = b->options.sizes.bytes;

    return i == 0 || bench_count(b, operation, bytes[i]) != bench_count(b, operation, bytes[i - 1]);
}

static ct_status run_sizes(struct bench *b, const struct operation *operation)
{
    ct_status status = CT_OK;

    for (int i = 0; i < b->options.sizes.count && status == CT_OK; i++)
        if (is_new_count(b, operation, i))
            status = run_places(b, operation, bench_count(b, operation, b->options.sizes.bytes[i]));
    return status;
}

static int count_rows(const struct bench *b)
{
    int rows = 0;

    for (int i = 0; i < operation_count; i++)
        for (int size = 0; size < b->options.sizes.count; size++)
            if (options_want(&b->options, operations[i].name)
                && b->ranks >= operations[i].least_ranks && is_new_count(b, &operations[i], size))
                rows += has_place(b, &operations[i], 0) + has_place(b, &operations[i], 1);
    return rows;
}

int bench_sweep(struct bench *b)
{
    if (b->rank == 0) {
        progress_begin(&b->progress, "ct_bench", count_rows(b));
        report_columns(&b->report);
    }
    for (int i = 0; i < operation_count; i++) {
        const struct operation *operation = &operations[i];

        if (!options_want(&b->options, operation->name))
            continue;
        if (b->ranks < operation->least_ranks) {
            if (b->rank == 0)
                printf("# %s takes %d ranks\n", operation->name, operation->least_ranks);
            continue;
        }
        if (run_sizes(b, operation) != CT_OK) {
            progress_wipe(&b->progress);
            return bench_fails(b, ct_last_error());
        }
    }
    return 0;
}
