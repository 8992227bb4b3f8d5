/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_set.c - sets of CPUs, and the CPUs that a process may use (sched_getaffinity). */
#include "runtime/util/cpu_set.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

int cpus_next(const struct cpus *cpus, int from)
{
    for (int cpu = from; cpu < CPUS_MOST; cpu++) {
        if (cpu % 8 == 0 && cpus->bytes[cpu / 8] == 0)
            cpu += 7;
        else if (cpus_has(cpus, cpu))
            return cpu;
    }
    return -1;
}

int cpus_count(const struct cpus *cpus)
{
    int count = 0;

    for (int cpu = cpus_next(cpus, 0); cpu >= 0; cpu = cpus_next(cpus, cpu + 1))
        count++;
    return count;
}

struct cpus cpus_both(const struct cpus *a, const struct cpus *b)
{
    struct cpus both;

    for (size_t i = 0; i < sizeof both.bytes; i++)
        both.bytes[i] = a->bytes[i] & b->bytes[i];
    return both;
}

void cpus_add_all(struct cpus *cpus, const struct cpus *more)
{
    for (size_t i = 0; i < sizeof cpus->bytes; i++)
        cpus->bytes[i] |= more->bytes[i];
}

int cpus_within(const struct cpus *inner, const struct cpus *outer)
{
    for (size_t i = 0; i < sizeof inner->bytes; i++)
        if (inner->bytes[i] & ~outer->bytes[i])
            return 0;
    return 1;
}

void cpus_write(const struct cpus *cpus, char *text)
{
    size_t used = 0;

    *text = '\0';
    for (int cpu = cpus_next(cpus, 0); cpu >= 0; cpu = cpus_next(cpus, cpu + 1)) {
        const int first = cpu;

        if (used > CPUS_TEXT - 20) { /* no room for another range and the dots */
            strcpy(text + used, ",...");
            return;
        }
        while (cpu + 1 < CPUS_MOST && cpus_has(cpus, cpu + 1))
            cpu++;
        used += (size_t)sprintf(text + used, first < cpu ? "%s%d-%d" : "%s%d", used ? "," : "",
                                first, cpu);
    }
}

/* A CPU mask in the kernel's form, which consists of longs.  struct cpus consists of bytes, so on
 * big-endian machines a CPU has its bit at another place there. */
struct mask {
    cpu_set_t sets[CPUS_MOST / CPU_SETSIZE];
};

int cpus_of_process(int pid, struct cpus *cpus)
{
    struct mask mask;

    memset(cpus, 0, sizeof *cpus);
    CPU_ZERO_S(sizeof mask, mask.sets);
    if (sched_getaffinity(pid, sizeof mask, mask.sets) < 0)
        return -1;
    for (int cpu = 0; cpu < CPUS_MOST; cpu++)
        if (CPU_ISSET_S((size_t)cpu, sizeof mask, mask.sets))
            cpus_add(cpus, cpu);
    return 0;
}

int cpus_enter(const struct cpus *cpus)
{
    struct mask mask;

    CPU_ZERO_S(sizeof mask, mask.sets);
    for (int cpu = cpus_next(cpus, 0); cpu >= 0; cpu = cpus_next(cpus, cpu + 1))
        CPU_SET_S((size_t)cpu, sizeof mask, mask.sets);
    return sched_setaffinity(0, sizeof mask, mask.sets);
}
