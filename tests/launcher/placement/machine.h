/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - machines that we don't have, as files under a temporary folder.  Each CPU
 * is described by the struct cpu that a reader of the files has to find. */
#ifndef TESTS_LAUNCHER_MACHINE_H
#define TESTS_LAUNCHER_MACHINE_H

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/placement/topology.h"

typedef struct cpu describe_cpu(int number);

static char root[64];

/* The file that `path` names, and the folders above it. */
static void write_file(const char *content, const char *path, ...)
    __attribute__((format(printf, 2, 3)));

static void write_file(const char *content, const char *path, ...)
{
    char full[512];
    int used = snprintf(full, sizeof full, "%s/", root);
    va_list args;
    FILE *file;

    va_start(args, path);
    vsnprintf(full + used, sizeof full - (size_t)used, path, args);
    va_end(args);
    for (char *slash = full + used; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        assert_true(mkdir(full, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    file = fopen(full, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", content);
    assert_int_equal(fclose(file), 0);
}

static void write_set(const struct cpus *set, const char *path)
{
    char text[CPUS_TEXT];

    cpus_write(set, text);
    write_file(text, "%s", path);
}

enum shared { SAME_CORE, SAME_CACHE };

/* Those of `count` CPUs that share something with CPU `number`. */
static struct cpus sharing(int count, describe_cpu *describe, int number, enum shared what)
{
    const struct cpu self = describe(number);
    struct cpus set = { { 0 } };

    for (int i = 0; i < count; i++) {
        const struct cpu other = describe(i);

        if (what == SAME_CORE ? other.core == self.core : other.cache == self.cache)
            cpus_add(&set, i);
    }
    return set;
}

static void write_cache(int count, describe_cpu *describe, int cpu, int index, const char *level,
                        const char *type, enum shared what)
{
    const struct cpus set = sharing(count, describe, cpu, what);
    char list[128];

    snprintf(list, sizeof list, "sys/devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list", cpu,
             index);
    write_set(&set, list);
    write_file(level, "sys/devices/system/cpu/cpu%d/cache/index%d/level", cpu, index);
    write_file(type, "sys/devices/system/cpu/cpu%d/cache/index%d/type", cpu, index);
}

static void write_cpu(int count, describe_cpu *describe, int cpu)
{
    const struct cpus core = sharing(count, describe, cpu, SAME_CORE);
    char list[128], number[12];

    snprintf(list, sizeof list, "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    write_set(&core, list);
    snprintf(number, sizeof number, "%d", describe(cpu).socket);
    write_file(number, "sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    write_cache(count, describe, cpu, 0, "1", "Data", SAME_CORE);
    write_cache(count, describe, cpu, 1, "1", "Instruction", SAME_CORE);
    write_cache(count, describe, cpu, 2, "2", "Unified", SAME_CORE);
    write_cache(count, describe, cpu, 3, "3", "Unified", SAME_CACHE);
}

static void write_nodes(int count, describe_cpu *describe)
{
    struct cpus nodes = { { 0 } };
    char list[128];

    for (int cpu = 0; cpu < count; cpu++)
        cpus_add(&nodes, describe(cpu).node);
    write_set(&nodes, "sys/devices/system/node/online");
    for (int node = cpus_next(&nodes, 0); node >= 0; node = cpus_next(&nodes, node + 1)) {
        struct cpus cpus = { { 0 } };

        for (int cpu = 0; cpu < count; cpu++)
            if (describe(cpu).node == node)
                cpus_add(&cpus, cpu);
        snprintf(list, sizeof list, "sys/devices/system/node/node%d/cpulist", node);
        write_set(&cpus, list);
    }
}

static void machine_create(int count, describe_cpu *describe)
{
    strcpy(root, "/tmp/machine_XXXXXX");
    assert_non_null(mkdtemp(root));
    if (count == 0)
        return;
    for (int cpu = 0; cpu < count; cpu++)
        write_cpu(count, describe, cpu);
    write_nodes(count, describe);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

static void machine_remove(void)
{
    assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- Machines -------------------------------------------------------------------- */

/* 2 sockets of 2 NUMA nodes of 4 cores of 2 threads, numbered as Linux likes: first one
 * thread of each core.  CPU 17 is the second thread of CPU 1's core. */
#define TWO_SOCKETS 32
__attribute__((unused)) static struct cpu two_sockets(int number)
{
    const int core = number % 16;

    return (
        struct cpu){ .core = core, .cache = core / 4 * 4, .socket = core / 8, .node = core / 4 };
}

/* 1 socket, 4 nodes of 4 cores, a last-level cache for every 2 cores, second threads
 * from 16 on: the kind of machine whose GPUs are at nodes 3 3 1 1 0 0 2 2. */
#define MANY_CACHES 32
__attribute__((unused)) static struct cpu many_caches(int number)
{
    const int core = number % 16;

    return (struct cpu){ .core = core, .cache = core / 2 * 2, .socket = 0, .node = core / 4 };
}

/* 2 sockets that take turns with numbers, threads of a core side by side there: CPUs 0
 * and 2 are one core of node 0, 1 and 3 one of node 1. */
#define TAKING_TURNS 16
__attribute__((unused)) static struct cpu taking_turns(int number)
{
    return (struct cpu){ .core = number / 4 * 4 + number % 2,
                         .cache = number % 2,
                         .socket = number % 2,
                         .node = number % 2 };
}

#endif
