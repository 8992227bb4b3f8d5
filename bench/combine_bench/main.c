/* SPDX-License-Identifier: Apache-2.0 */
/* combine_bench - the folds of a reduction beside what the machine can do.
 *
 *   combine_bench [--rounds=N] [--most=BYTES] [--csv] [DTYPE:OP:SOURCES:DESTINATIONS]...
 *
 * For each row and each size of a source, 1 KiB to 64 MiB, one table line: a fold
 * through the caches and one past them, a plain read of one source, a memcpy, and
 * (two sources, one destination) a loop over f32 written by hand in the widest
 * vectors that the machine has.  They take turns in short batches, so what else
 * runs on the machine hits all alike.  GB/s count the bytes read and written, in the
 * median batch; a ratio is the median of the ratios of neighbouring batches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/combine_bench/by_hand.h"
#include "bench/progress.h"
#include "runtime/reduction/combine.h"
#include "runtime/types/dtype.h"

enum { MOST_ROUNDS = 1000, MOST_BUFFERS = 32, LEAST = 1 << 10 };

enum contender { READ, MEMCPY, BY_HAND, FOLD, STREAMING, CONTENDERS };
static const char *const names[] = { "read", "memcpy", "by hand", "fold", "streaming" };

struct row {
    ct_dtype dtype;
    ct_op op;
    int sources, destinations;
};

struct bench {
    int rounds, csv;
    size_t most;
    char *source[MOST_BUFFERS], *destination[MOST_BUFFERS];
    struct progress progress;
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void call(const struct bench *bench, const struct row *row, enum contender which,
                 size_t bytes)
{
    const struct fold fold = { row->dtype, row->op, row->sources, 1, &row->sources };
    const size_t count = bytes / ct_dtype_size(row->dtype);

    switch (which) {
    case READ:
        by_hand_read(bench->source[0], bytes);
        break;
    case MEMCPY:
        memcpy(bench->destination[0], bench->source[0], bytes);
        break;
    case BY_HAND:
        by_hand_add(bench->destination[0], bench->source[0], bench->source[1], bytes);
        break;
    default:
        combine_fold_to(&fold, (void *const *)bench->destination, row->destinations,
                        (const void *const *)bench->source, count, which == STREAMING);
    }
}

static double moved(const struct row *row, enum contender which, size_t bytes)
{
    const int streams[] = { 1, 2, 3, row->sources + row->destinations,
                            row->sources + row->destinations };

    return (double)bytes * streams[which];
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, ascending);
    return values[n / 2];
}

/* A batch lasts some 20 us at least, or one call. */
static void measure(struct bench *bench, const struct row *row, size_t bytes, int hand)
{
    static double speed[CONTENDERS][MOST_ROUNDS], ratio[CONTENDERS][MOST_ROUNDS];
    const enum contender beside = hand ? BY_HAND : MEMCPY;
    const int calls = 1 + (int)((2 << 20) / (bytes * (size_t)(row->sources + row->destinations)));
    const int rounds = bytes < 8 << 20 ? bench->rounds : bench->rounds / 5 + 1;

    for (int r = -1; r < rounds; r++)
        for (int c = 0; c < CONTENDERS; c++) {
            double began;

            if (c == BY_HAND && !hand)
                continue;
            began = now_ns();
            for (int i = 0; i < calls; i++)
                call(bench, row, c, bytes);
            if (r >= 0) /* the first warms up */
                speed[c][r] = calls * moved(row, c, bytes) / (now_ns() - began);
        }
    for (int c = 0; c < CONTENDERS; c++)
        for (int r = 0; r < rounds; r++)
            ratio[c][r] = speed[c][r] / speed[beside][r];
    progress_wipe(&bench->progress);
    printf(bench->csv ? "%s,%s,%d,%d,%zu" : "| %s %s %d to %d | %zu ", dtype_name(row->dtype),
           op_name(row->op), row->sources, row->destinations, bytes);
    for (int c = 0; c < CONTENDERS; c++)
        if (c == BY_HAND && !hand)
            printf(bench->csv ? "," : "| - ");
        else
            printf(bench->csv ? ",%.1f" : "| %.1f ", median(speed[c], rounds));
    printf(bench->csv ? ",%.2f,%.2f\n" : "| %.2f | %.2f |\n", median(ratio[FOLD], rounds),
           median(ratio[STREAMING], rounds));
    fflush(stdout);
}

static void measure_row(struct bench *bench, const struct row *row)
{
    const int hand =
        row->dtype == CT_F32 && row->op == CT_SUM && row->sources == 2 && row->destinations == 1;

    for (size_t bytes = LEAST; bytes <= bench->most; bytes *= 4) {
        progress_case(&bench->progress, "%s %s, %zu bytes", dtype_name(row->dtype),
                      op_name(row->op), bytes);
        measure(bench, row, bytes, hand);
    }
}

/* ---- The command line -------------------------------------------------------------- */

static int read_row(const char *text, struct row *row)
{
    char dtype[16], op[16];

    if (sscanf(text, "%15[^:]:%15[^:]:%d:%d", dtype, op, &row->sources, &row->destinations) != 4)
        return 0;
    for (row->dtype = 0; strcmp(dtype_name(row->dtype), dtype) != 0; row->dtype++)
        if (ct_dtype_size(row->dtype) == 0)
            return 0;
    for (row->op = 0; strcmp(op_name(row->op), op) != 0; row->op++)
        if (!op_is_builtin(row->op))
            return 0;
    return combine_defined(row->dtype, row->op) && row->sources > 0 && row->destinations > 0
           && row->sources <= MOST_BUFFERS && row->destinations <= MOST_BUFFERS;
}

/* Lines of neighbouring buffers would meet in the same sets of the caches: each starts elsewhere.
 */
static int make_buffers(struct bench *bench, int sources, int destinations)
{
    for (int i = 0; i < sources + destinations; i++) {
        char *const memory = aligned_alloc(4096, bench->most + (1 << 20));

        if (!memory)
            return 0;
        memset(memory, i + 1, bench->most + (1 << 20));
        *(i < sources ? &bench->source[i] : &bench->destination[i - sources]) = memory + i * 320;
    }
    return 1;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {
        "f32:sum:2:1",  "f32:sum:2:2",  "f32:sum:3:1",    "f32:sum:4:1",    "f32:sum:4:4",
        "f32:sum:5:1",  "f32:sum:8:1",  "f32:sum:8:8",    "f32:avg:2:1",    "f32:max:2:1",
        "f64:sum:2:1",  "i8:sum:2:1",   "i32:sum:2:1",    "i32:avg:2:1",    "c64:product:2:1",
        "f16:sum:2:1",  "f16:sum:4:1",  "bf16:sum:2:1",   "bf16:sum:4:1",   "bf16:sum:5:1",
        "bf16:avg:2:1", "bool:sum:2:1", "f8e4m3:sum:2:1", "f8e5m2:sum:2:1",
    };
    struct bench bench = { .rounds = 60, .most = 64 << 20 };
    const char *const *texts = usual;
    int count = sizeof usual / sizeof *usual, sources = 2, destinations = 1, at = 1, cases = 0;
    struct row row;

    for (; at < argc && argv[at][0] == '-'; at++)
        if (!strcmp(argv[at], "--csv"))
            bench.csv = 1;
        else if (sscanf(argv[at], "--rounds=%d", &bench.rounds) != 1
                 && sscanf(argv[at], "--most=%zu", &bench.most) != 1)
            break;
    if (at < argc)
        texts = (const char *const *)argv + at, count = argc - at;
    for (int i = 0; i < count; i++) {
        if (!read_row(texts[i], &row) || bench.rounds < 1 || bench.rounds > MOST_ROUNDS) {
            fprintf(stderr,
                    "combine_bench: %s: no DTYPE:OP:SOURCES:DESTINATIONS like f32:sum:2:1 "
                    "(at most %d of each)\n",
                    texts[i], MOST_BUFFERS);
            return 2;
        }
        sources = row.sources > sources ? row.sources : sources;
        destinations = row.destinations > destinations ? row.destinations : destinations;
    }
    if (!make_buffers(&bench, sources, destinations)) {
        fprintf(stderr, "combine_bench: no memory for %d buffers of %zu bytes\n",
                sources + destinations, bench.most);
        return 1;
    }
    if (bench.csv)
        printf("dtype,op,sources,destinations,bytes,read,memcpy,by_hand,fold,streaming,ratio,"
               "streaming_ratio\n");
    else
        printf("| fold | bytes | %s | %s | %s | %s | %s | ratio | streaming ratio |\n"
               "|---|---|---|---|---|---|---|---|---|\n",
               names[0], names[1], names[2], names[3], names[4]);
    for (size_t bytes = LEAST; bytes <= bench.most; bytes *= 4)
        cases += count;
    progress_begin(&bench.progress, "combine_bench", cases);
    for (int i = 0; i < count; i++)
        if (read_row(texts[i], &row))
            measure_row(&bench, &row);
    return 0;
}
