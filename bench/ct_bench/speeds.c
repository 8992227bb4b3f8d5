/* SPDX-License-Identifier: Apache-2.0 */
/* speeds.c - how fast the ranks of one host can copy and fold, all at once.
 *
 * A process has two areas, one to read and one to write.  Hot: always the same bytes of them.
 * Cold: on to the next bytes each time, and the areas of all processes are far larger than a
 * cache.  Of several rounds the best counts; a round is as long as its slowest process. */
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/ct_bench/crew.h"
#include "bench/ct_bench/limits.h"
#include "bench/ct_bench/measure.h"

#define COLD_BYTES ((size_t)256 << 20) /* of all areas together */
#define ROUND_BYTES ((size_t)1 << 20)  /* at least, so that the clock costs nothing */
#define LEAST_ROUNDS 3
#define ROUNDS_US 20000.0 /* then it is enough; on a busy host some rounds go undisturbed */

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define NO_CLONES
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define NO_CLONES
#endif
#endif
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(NO_CLONES)
#define CLONED __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define CLONED
#endif
/* dst may be the first source, which hinders nothing. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* What one process has to do: the result's bytes, and from how many sources. */
struct job {
    char *read, *write;
    size_t area;    /* bytes of each that are walked through when cold */
    size_t largest; /* result that is asked for */
    int sources;
};

CLONED static void sum_of_2(float *dst, const float *a, const float *b, size_t n)
{
    INDEPENDENT
    for (size_t i = 0; i < n; i++)
        dst[i] = a[i] + b[i];
}

CLONED static void sum_of_4(float *dst, const float *a, const float *b, const float *c,
                            const float *d, size_t n)
{
    INDEPENDENT
    for (size_t i = 0; i < n; i++)
        dst[i] = a[i] + b[i] + c[i] + d[i];
}

/* Source j begins at src + j * stride.  In pieces that stay in the first cache: each source is
 * read once, the result written once. */
static void fold(char *to, const char *from, size_t stride, int sources, size_t bytes)
{
    enum { PIECE = 4096 };

    for (size_t at = 0; at < bytes; at += PIECE) {
        const size_t n = (bytes - at < PIECE ? bytes - at : PIECE) / sizeof(float);
        float *dst = (float *)(void *)(to + at);
        const float *first = (const float *)(const void *)(from + at);
        const size_t step = stride / sizeof(float);
        int j = sources < 4 ? 2 : 4;

        if (j == 2)
            sum_of_2(dst, first, first + step, n);
        else
            sum_of_4(dst, first, first + step, first + 2 * step, first + 3 * step, n);
        for (; j + 3 <= sources; j += 3)
            sum_of_4(dst, dst, first + (size_t)j * step, first + (size_t)(j + 1) * step,
                     first + (size_t)(j + 2) * step, n);
        for (; j < sources; j++)
            sum_of_2(dst, dst, first + (size_t)j * step, n);
    }
}

/* Bytes of each source. */
static size_t room_of(const struct job *job, int folds)
{
    return folds ? job->area / (size_t)job->sources / 64 * 64 : job->area;
}

/* One result of `bytes` from `at` on, of a source or of the sum of all. */
static void once(const struct job *job, int folds, size_t at, size_t bytes)
{
    if (folds && job->sources > 1)
        fold(job->write + at, job->read + at, room_of(job, 1), job->sources, bytes);
    else
        memcpy(job->write + at, job->read + at, bytes);
}

/* The best time of one result, of the slowest process. */
static int best_time(const struct member *m, int folds, size_t bytes, int cold, double *best)
{
    const struct job *job = m->arg;
    const size_t room = room_of(job, folds);
    const size_t repeats = bytes < ROUND_BYTES ? ROUND_BYTES / bytes : 1;
    double spent = 0;
    size_t at = 0;

    *best = NAN;
    if (bytes > (cold ? room / 2 : room))
        return 0;
    for (int round = 0; round < LEAST_ROUNDS || spent < ROUNDS_US; round++) {
        double us, began;

        if (crew_meet(m) != 0)
            return -1;
        began = now_us();
        for (size_t i = 0; i < repeats; i++) {
            once(job, folds, at, bytes);
            __asm__ volatile("" ::: "memory"); /* each of them is done */
            at = !cold || at + 2 * bytes > room ? 0 : at + bytes;
        }
        if (crew_longest(m, (now_us() - began) / (double)repeats, &us) != 0)
            return -1;
        spent += us * (double)repeats; /* the same on all, so they go on or end together */
        *best = fmin(*best, us);
    }
    return 0;
}

static void *touched(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return at == MAP_FAILED ? NULL : memset(at, 1, bytes);
}

static int all_sizes(const struct member *m)
{
    struct job *job = m->arg;
    double *result = m->place->result;
    struct speed best;

    job->read = touched(job->area);
    job->write = touched(job->area);
    if (!job->read || !job->write)
        return -1;
    for (int i = 0; i < LIMIT_SIZES; i++) {
        const size_t bytes = limit_bytes(i);

        if (i > 0 && bytes >= 4 * job->largest)
            break;
        if (best_time(m, 0, bytes, 0, &best.copy_hot) != 0
            || best_time(m, 0, bytes, 1, &best.copy_cold) != 0
            || best_time(m, 1, bytes, 0, &best.fold_hot) != 0
            || best_time(m, 1, bytes, 1, &best.fold_cold) != 0)
            return -1;
        if (m->index == 0)
            memcpy(result + 4 * i,
                   (double[4]){ best.copy_hot, best.copy_cold, best.fold_hot, best.fold_cold },
                   4 * sizeof *result);
    }
    return 0;
}

int limits_speeds(struct limits *limits, size_t largest, const cpu_set_t *cpus, char why[200])
{
    const size_t cold = COLD_BYTES / 2 / (size_t)limits->processes;
    struct job job = { .area = largest > cold ? largest : cold,
                       .largest = largest,
                       .sources = limits->ranks };
    double result[CREW_RESULTS];

    /* Of many ranks each has a source of two of the smallest size in any case. */
    if (job.area < (size_t)limits->ranks * 2 * limit_bytes(0))
        job.area = (size_t)limits->ranks * 2 * limit_bytes(0);
    if (crew_run(limits->processes, cpus, 0, all_sizes, &job, result, why) < 0)
        return -1;
    for (limits->sizes = 0; limits->sizes < LIMIT_SIZES; limits->sizes++) {
        const double *r = result + 4 * limits->sizes;

        if (!(r[0] > 0))
            break; /* too large: not measured */
        limits->speeds[limits->sizes] =
            (struct speed){ limit_bytes(limits->sizes), r[0], r[1], r[2], r[3] };
    }
    return 0;
}
