/* SPDX-License-Identifier: Apache-2.0 */
/* crew.h - a few forked processes, each on a CPU of its own, that measure something together. */
#ifndef CT_BENCH_CREW_H
#define CT_BENCH_CREW_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_CREW 1024
#define CREW_RESULTS 64

/* What they share; zeroed at the start, then for whatever the measurement needs. */
struct meeting_place {
    _Alignas(128) _Atomic uint32_t arrived;
    _Alignas(128) _Atomic uint32_t round;
    _Alignas(128) double us[MOST_CREW]; /* each writes its own, reads the others' after a meeting */
    _Alignas(128) _Atomic uint32_t flag[2][32]; /* a cache line pair each */
    double result[CREW_RESULTS];                /* member 0's, for the caller */
};

struct member {
    int index, count;
    struct meeting_place *place;
    void *arg;
};

/* Forks `count` members; member i runs on the i-th CPU of `cpus`, or all on the first of them
 * with `on_one`.  A member that can't go on returns non-zero.  The results are copied to `result`.
 * 0, or -1 with a sentence in `why`; nobody is left behind. */
int crew_run(int count, const cpu_set_t *cpus, int on_one, int (*body)(const struct member *),
             void *arg, double result[CREW_RESULTS], char why[200]);

/* All members come here before one goes on; non-zero when somebody does not come. */
int crew_meet(const struct member *member);

/* Meets, and gives the longest of all members' times.  Non-zero as above. */
int crew_longest(const struct member *member, double us, double *longest);

#endif
