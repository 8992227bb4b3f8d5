/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - soak: many small operations, every result checked, nothing grows.
 *
 *   soak [--one-cpu] [OPERATIONS]        on 2 ranks; 10 million
 *   CT_FAULT=first_seq:4294967000 soak
 *
 * --one-cpu: there a hand-over takes microseconds however busy the machine is; with a CPU
 * for each rank, and others that want them, it takes a tick.
 *
 * Mostly all_reduce of 8 bytes, and of ten operations one broadcast, one barrier and one
 * message each way; each thousandth is a group that is made, used and destroyed.  Memory and
 * descriptors of each rank are read at a tenth of the way and at the end: what is warm by then
 * may not grow.  The rings of messages, which small ones touch bit by bit, are gone through first.
 * Exits with 1 if it does, or if a result is wrong. */
#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/ct.h"
#include "runtime/util/cpu_set.h"

/* Of VmRSS: the kernel counts a thread's pages in steps of 64, and malloc may take another
 * page for one that it has not given back. */
#define GROWTH_KB 512

struct use {
    long rss_kb;
    int descriptors;
};

static int fails(const char *what)
{
    fprintf(stderr, "soak: rank %d: %s: %s\n", ct_rank(CT_WORLD), what, ct_last_error());
    return 1;
}

static int wrong(const char *what, int64_t i, int64_t got, int64_t wanted)
{
    fprintf(stderr, "soak: rank %d: %s %" PRId64 " gives %" PRId64 " instead of %" PRId64 "\n",
            ct_rank(CT_WORLD), what, i, got, wanted);
    return 1;
}

static struct use use_now(void)
{
    struct use use = { -1, 0 };
    FILE *status = fopen("/proc/self/status", "re");
    DIR *dir = opendir("/proc/self/fd");
    char line[128];

    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmRSS:", 6))
            use.rss_kb = strtol(line + 6, NULL, 10);
    while (dir && readdir(dir))
        use.descriptors++;
    if (status)
        fclose(status);
    if (dir)
        closedir(dir);
    use.descriptors -= 4; /* ".", "..", and those of this function */
    return use;
}

/* ---- Operations, by their number; non-zero: what was wrong is said ---------------- */

static int all_reduce(ct_group *group, int64_t i)
{
    const int64_t mine = 2 * i + ct_rank(group), wanted = 4 * i + 1;
    int64_t sum = -1;

    if (ct_all_reduce(group, &mine, &sum, 1, CT_I64, CT_SUM, NULL) != CT_OK)
        return fails("all_reduce");
    return sum == wanted ? 0 : wrong("all_reduce", i, sum, wanted);
}

static int broadcast(int64_t i)
{
    const int root = (int)(i / 10 % 2);
    int64_t value = ct_rank(CT_WORLD) == root ? i : -1;

    if (ct_broadcast(CT_WORLD, &value, 1, CT_I64, root, NULL) != CT_OK)
        return fails("broadcast");
    return value == i ? 0 : wrong("broadcast", i, value, i);
}

static int ping(int64_t i)
{
    const int rank = ct_rank(CT_WORLD);
    int64_t value = i;

    if (rank == 0 && ct_send(CT_WORLD, &value, 1, CT_I64, 1, 7) != CT_OK)
        return fails("send");
    value = -1;
    if (ct_recv(CT_WORLD, &value, 1, CT_I64, !rank, 7, NULL) != CT_OK)
        return fails("recv");
    if (value != i)
        return wrong("recv", i, value, i);
    if (rank == 1 && ct_send(CT_WORLD, &value, 1, CT_I64, 0, 7) != CT_OK)
        return fails("send");
    return 0;
}

static int group_of_both(int64_t i)
{
    static const int ranks[] = { 0, 1 };
    ct_group *group;
    int bad;

    if (ct_new_group(ranks, 2, &group) != CT_OK)
        return fails("new_group");
    bad = all_reduce(group, i);
    return ct_destroy_process_group(group) == CT_OK ? bad : fails("destroy");
}

static int operation(int64_t i)
{
    if (i % 1000 == 999)
        return group_of_both(i);
    switch (i % 10) {
    case 7:
        return broadcast(i);
    case 8:
        return ct_barrier(CT_WORLD, NULL) == CT_OK ? 0 : fails("barrier");
    case 9:
        return ping(i);
    default:
        return all_reduce(CT_WORLD, i);
    }
}

/* ---- A rank ------------------------------------------------------------------- */

static int judge(int64_t operations, double seconds, struct use early, struct use late)
{
    const int grows =
        late.descriptors > early.descriptors || late.rss_kb > early.rss_kb + GROWTH_KB;

    printf("rank %d: %" PRId64 " operations in %.1f s, all right; VmRSS %ld kB at 10 %%, %ld kB at "
           "100 %%; descriptors %d and %d%s\n",
           ct_rank(CT_WORLD), operations, seconds, early.rss_kb, late.rss_kb, early.descriptors,
           late.descriptors, grows ? ": it GROWS" : "");
    fflush(stdout);
    return grows;
}

static int go_through_rings(int rank)
{
    enum { BYTES = 8 << 20 }; /* more than there is in any */
    char *out = calloc(2, BYTES);
    ct_work *work = NULL;
    int bad = !out || ct_isend(CT_WORLD, out, BYTES, CT_I8, 1 - rank, 1, &work) != CT_OK
              || ct_recv(CT_WORLD, out + BYTES, BYTES, CT_I8, 1 - rank, 1, NULL) != CT_OK;

    if (ct_wait(work) != CT_OK || bad)
        bad = fails("messages of 8 MiB");
    free(out);
    return bad;
}

static int rank_main(int rank, int size, void *arg)
{
    const int64_t operations = *(const int64_t *)arg;
    const time_t start = time(NULL);
    struct use early = { 0 };
    int bad = 0;

    (void)size;
    if (ct_init_process_group(NULL) != CT_OK)
        return fails("init");
    bad = go_through_rings(rank);
    for (int64_t i = 0; i < operations && !bad; i++) {
        if (i == operations / 10)
            early = use_now();
        bad = operation(i);
    }
    if (!bad)
        bad = judge(operations, difftime(time(NULL), start), early, use_now());
    if (!bad && ct_destroy_process_group(CT_WORLD) != CT_OK)
        bad = fails("destroy");
    return bad;
}

int main(int argc, char **argv)
{
    const int one_cpu = argc > 1 && !strcmp(argv[1], "--one-cpu");
    const char *number = argc > 1 + one_cpu ? argv[1 + one_cpu] : "10000000";
    int64_t operations = strtoll(number, NULL, 10);
    cpu_set_t cpu[CPUS_MOST / CPU_SETSIZE];

    if (operations < 1000) {
        fprintf(stderr, "usage: soak [--one-cpu] [OPERATIONS], from 1000 up\n");
        return 2;
    }
    CPU_ZERO_S(sizeof cpu, cpu);
    CPU_SET_S((size_t)sched_getcpu(), sizeof cpu, cpu);
    if (one_cpu && sched_setaffinity(0, sizeof cpu, cpu) < 0) {
        perror("soak: sched_setaffinity");
        return 2;
    }
    return ct_spawn(2, rank_main, &operations) == 0 ? 0 : 1;
}
