/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_set.h - a set of CPUs, as the kernel takes it and as it is written. */
#ifndef RUNTIME_UTIL_CPU_SET_H
#define RUNTIME_UTIL_CPU_SET_H

#include <stddef.h>

#define CPUS_MOST 8192 /* Linux knows no more; --bind takes no higher number */
#define CPUS_TEXT 256

/* Bit n of the bytes is CPU n, as config/ reads lists. */
struct cpus {
    unsigned char bytes[CPUS_MOST / 8];
};

static inline int cpus_has(const struct cpus *cpus, int cpu)
{
    return cpus->bytes[cpu / 8] >> cpu % 8 & 1;
}

static inline void cpus_add(struct cpus *cpus, int cpu)
{
    cpus->bytes[cpu / 8] = (unsigned char)(cpus->bytes[cpu / 8] | 1 << cpu % 8);
}

/* The first CPU of the set that is not below `from`; -1: there is none.
 *     for (int cpu = cpus_next(set, 0); cpu >= 0; cpu = cpus_next(set, cpu + 1)) */
int cpus_next(const struct cpus *cpus, int from);
int cpus_count(const struct cpus *cpus);
struct cpus cpus_both(const struct cpus *a, const struct cpus *b); /* what is in both */
void cpus_add_all(struct cpus *cpus, const struct cpus *more);
int cpus_within(const struct cpus *inner, const struct cpus *outer);

/* "0-3,8" into text, CPUS_TEXT bytes; what has no room becomes "..." */
void cpus_write(const struct cpus *cpus, char *text);

/* Those that process pid may use (0: we).  -1 with errno. */
int cpus_of_process(int pid, struct cpus *cpus);

/* Binds the calling thread to these.  It calls no malloc, so a child may use it before its exec. */
int cpus_enter(const struct cpus *cpus);

#endif
