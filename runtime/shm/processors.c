/* SPDX-License-Identifier: Apache-2.0 */
/* processors.c - counts processors from affinity masks and the limits of control groups. */
#include "runtime/shm/processors.h"

#include "runtime/util/cgroup.h"

void processors_own(struct processors *processors, const char *root)
{
    cpus_of_process(0, &processors->cpus); /* on failure the mask is empty */
    processors->milli = cgroup_milli_cpus(root);
}

void processors_add(struct processors *processors, const struct processors *more)
{
    cpus_add_all(&processors->cpus, &more->cpus);
    if (processors->milli == 0 || (more->milli > 0 && more->milli < processors->milli))
        processors->milli = more->milli;
}

int processors_count(const struct processors *processors)
{
    const int cpus = cpus_count(&processors->cpus);
    const long long limit = processors->milli / 1000;
    const long long count = processors->milli > 0 && limit < cpus ? limit : cpus;

    return count > 0 ? (int)count : 1;
}
