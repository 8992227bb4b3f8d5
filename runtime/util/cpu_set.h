/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_set.h - sets of CPUs, their text form, and the CPUs that a process may use. */
#ifndef RUNTIME_UTIL_CPU_SET_H
#define RUNTIME_UTIL_CPU_SET_H

#include <stddef.h>

#define CPUS_MOST 8192 /* Linux and --bind support no more CPUs */
#define CPUS_TEXT 256

/* CPU n is bit n % 8 of byte n / 8, as in the sets that cpu_list() of config/ fills. */
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

/* Returns the lowest CPU of the set that is not below `from`, or -1 if the set has no such CPU.
 * This loop visits all CPUs of a set:
 *     for (int cpu = cpus_next(set, 0); cpu >= 0; cpu = cpus_next(set, cpu + 1)) */
int cpus_next(const struct cpus *cpus, int from);
int cpus_count(const struct cpus *cpus);
struct cpus cpus_both(const struct cpus *a, const struct cpus *b); /* the intersection */
void cpus_add_all(struct cpus *cpus, const struct cpus *more);
int cpus_within(const struct cpus *inner, const struct cpus *outer);

/* Writes the set as ranges ("0-3,8") into text, which has CPUS_TEXT bytes.  Ranges that do not fit
 * are replaced by "...". */
void cpus_write(const struct cpus *cpus, char *text);

/* Sets *cpus to the CPUs that process pid may use, or the calling thread if pid is 0.  Returns 0,
 * or -1 with errno set. */
int cpus_of_process(int pid, struct cpus *cpus);

/* Binds the calling thread to the CPUs of the set.  Returns 0, or -1 with errno set.  Calls no
 * malloc(), so a child of fork() may call this function before exec. */
int cpus_enter(const struct cpus *cpus);

#endif
