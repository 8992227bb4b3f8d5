/* SPDX-License-Identifier: Apache-2.0 */
/* page.h - memory that launch_bench shares with the workers, so that a stamp costs a store. */
#ifndef LAUNCH_BENCH_PAGE_H
#define LAUNCH_BENCH_PAGE_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define MOST_WORKERS 64
#define ATTEMPTS 2
#define VICTIM 1 /* the rank that dies */

/* All times are ns of CLOCK_MONOTONIC; 0: did not happen. */
struct page {
    _Atomic int ready;                     /* workers of the first attempt that are up */
    int64_t first[ATTEMPTS][MOST_WORKERS]; /* main's first line, by rank */
    int64_t death;                         /* of the victim */
    int64_t told[MOST_WORKERS];            /* SIGTERM arrived */
};

static inline int64_t stamp(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
