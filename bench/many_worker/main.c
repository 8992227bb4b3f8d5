/* SPDX-License-Identifier: Apache-2.0 */
/* many_worker - what a rank of a large job costs: how long init and a few calls take, and what
 * memory, page tables and descriptors the rank has then.  Rank 0 prints the largest of each, the
 * page tables of all ranks together, and the shared memory of the host. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/ct.h"

enum { CALLS = 20, WARM = 3 };

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void must(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "many_worker: %s\n", ct_last_error());
    exit(1);
}

/* kB; -1: the file has no such line */
static double field(const char *file, const char *name)
{
    FILE *from = fopen(file, "re");
    char line[256];
    double value = -1;

    while (from && value < 0 && fgets(line, sizeof line, from))
        if (!strncmp(line, name, strlen(name)))
            value = atof(line + strlen(name) + 1);
    if (from)
        fclose(from);
    return value;
}

static double descriptors(void)
{
    DIR *all = opendir("/proc/self/fd");
    int count = -3; /* ".", ".." and the folder itself */

    while (all && readdir(all))
        count++;
    if (all)
        closedir(all);
    return count;
}

static double barrier_s(void)
{
    double start = 0;

    for (int i = 0; i < WARM + CALLS; i++) {
        if (i == WARM)
            start = now_s();
        must(ct_barrier(NULL, NULL));
    }
    return (now_s() - start) / CALLS;
}

static double all_reduce_s(size_t count)
{
    float *data = calloc(count, sizeof *data);
    double start = 0;

    for (int i = 0; i < WARM + CALLS; i++) {
        if (i == WARM)
            start = now_s();
        must(ct_all_reduce(NULL, data, data, count, CT_F32, CT_MAX, NULL));
    }
    free(data);
    return (now_s() - start) / CALLS;
}

int main(void)
{
    enum { INIT, FIRST, BARRIER, SMALL, LARGE, RSS, PTE, FDS, FIGURES };
    const double shared = field("/proc/meminfo", "Shmem"), start = now_s();
    double own[FIGURES], most[FIGURES], tables, ready;

    must(ct_init_process_group(NULL));
    ready = now_s();
    own[INIT] = ready - start;
    must(ct_barrier(NULL, NULL));
    own[FIRST] = now_s() - ready;
    own[BARRIER] = barrier_s();
    own[RSS] = field("/proc/self/status", "VmRSS");
    own[PTE] = field("/proc/self/status", "VmPTE");
    own[FDS] = descriptors();
    own[SMALL] = all_reduce_s(2);
    own[LARGE] = all_reduce_s(16384);
    must(ct_all_reduce(NULL, own, most, FIGURES, CT_F64, CT_MAX, NULL));
    must(ct_all_reduce(NULL, &own[PTE], &tables, 1, CT_F64, CT_SUM, NULL));
    if (ct_rank(NULL) == 0)
        printf("%d ranks: init %.3f s, first barrier %.1f ms, barrier %.2f ms, all_reduce of 8 B "
               "%.2f ms, of 64 KiB %.1f ms; a rank %.1f MB, %.0f descriptors; page tables of all "
               "%.1f MB, shared memory of the host %+.1f MB\n",
               ct_size(NULL), most[INIT], most[FIRST] * 1e3, most[BARRIER] * 1e3, most[SMALL] * 1e3,
               most[LARGE] * 1e3, most[RSS] / 1024, most[FDS], tables / 1024,
               (field("/proc/meminfo", "Shmem") - shared) / 1024);
    must(ct_destroy_process_group(NULL));
    return 0;
}
