/* SPDX-License-Identifier: Apache-2.0 */
/* page.h - memory that detection_bench shares with the ranks of a run, however they were started.
 *
 * The driver empties it and says who dies and when.  A rank writes down when it makes the call that
 * it will wait in, and when that call returned with what.  A rank that knows of the death stays in
 * place until `leave`, or the others would notice its own end.
 * bench/detection_gloo.py knows the offsets. */
#ifndef DETECTION_BENCH_PAGE_H
#define DETECTION_BENCH_PAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define MOST_RANKS 16
#define SENTENCE 400

/* All times are ns of CLOCK_MONOTONIC; 0: did not happen. */
struct page {
    int64_t victim;   /* the rank that dies */
    int64_t delay_ns; /* it does so long after the others are in their calls */
    _Atomic int64_t death;
    _Atomic int64_t leave; /* 1: it has been seen enough */
    _Atomic int64_t pid[MOST_RANKS];
    _Atomic int64_t called[MOST_RANKS];   /* just before the call */
    _Atomic int64_t returned[MOST_RANKS]; /* just behind it; status and sentence are there before */
    _Atomic int64_t told[MOST_RANKS];     /* SIGTERM arrived */
    int64_t status[MOST_RANKS];           /* ct_status; of a peer, 0 or 1 */
    char sentence[MOST_RANKS][SENTENCE];
};
_Static_assert(offsetof(struct page, pid) == 32 && offsetof(struct page, sentence) == 672,
               "detection_gloo.py");

static inline int64_t stamp(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
