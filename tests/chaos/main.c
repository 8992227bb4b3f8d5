/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - chaos_worker: a rank that checks everything it is given, under scripts/chaos.
 *
 * Until CHAOS_MS have passed on rank 0: an operation, its size and its root drawn from
 * CHAOS_SEED and the step's number, alike on all ranks; each result is compared with what it
 * must be.  What it has to tell lies in the folder CHAOS_DIR:
 *
 *     pid.RANK       who to kill; seen.RANK marks an attempt that has no faults of its own
 *     fds.NODE       how many descriptors ctrun has, a line for each attempt
 *     wrong.RANK     a result that is wrong; leak.RANK: descriptors that stayed open
 *     shrunk.RANK    it went on with the survivors; done.RANK: it came to its end
 *
 * CHAOS_LIMIT=memory|descriptors:RANK:STEP:ROOM takes it away from a rank at a step (0: before
 * init) but for ROOM pages or descriptors.  With CHAOS_SHRINK a death is survived.
 * Exits with 0, 3 (an operation failed; the sentence is on stderr) or 99 (wrong result). */
#include <dirent.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "include/ct.h"

enum { MOST = 60000, GAVE_UP = 3, WRONG = 99 };

static int64_t given[MOST * 2], got[MOST * 2];
static ct_group *group; /* the world, or the survivors */
static int world_rank, descriptors_at_start, limited;
static int64_t step;

static void note(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends to a file of this rank. */
static void note(const char *what, const char *format, ...)
{
    char path[512];
    va_list args;
    FILE *file;

    snprintf(path, sizeof path, "%s/%s.%d", getenv("CHAOS_DIR"), what, world_rank);
    file = fopen(path, "ae");
    if (!file)
        return; /* without a descriptor to write it; what matters is said by the exit code too */
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    fclose(file);
}

static int descriptors_of(const char *path)
{
    DIR *dir = opendir(path);
    int count = -3; /* ".", "..", and the folder's own */

    if (!dir)
        return -1;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* ---- Ends --------------------------------------------------------------------- */

static _Noreturn void leave(int code)
{
    if (group)
        ct_destroy_process_group(group);
    ct_destroy_process_group(CT_WORLD);
    if (!limited && descriptors_of("/proc/self/fd") != descriptors_at_start)
        note("leak", "%d descriptors at the start, %d at the end\n", descriptors_at_start,
             descriptors_of("/proc/self/fd"));
    if (code == 0)
        note("done", "%lld steps\n", (long long)step);
    exit(code);
}

static _Noreturn void gave_up(void)
{
    fprintf(stderr, "chaos_worker: rank %d, step %lld: %s\n", world_rank, (long long)step,
            ct_last_error());
    leave(GAVE_UP);
}

static _Noreturn void wrong(const char *what, size_t at, int64_t value, int64_t wanted)
{
    note("wrong", "step %lld: %s: element %zu is %lld instead of %lld\n", (long long)step, what, at,
         (long long)value, (long long)wanted);
    fprintf(stderr, "chaos_worker: rank %d: wrong result of %s\n", world_rank, what);
    _exit(WRONG);
}

/* ---- Operations ------------------------------------------------------------------ */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Element `at` that a rank gives in this step. */
static int64_t element(int rank, size_t at)
{
    return rank * 1000003 + step * 31 + (int64_t)at * 7;
}

static int64_t sum_of(int p, size_t at)
{
    return p * (step * 31 + (int64_t)at * 7) + (int64_t)1000003 * p * (p - 1) / 2;
}

static void fill(int64_t *to, int rank, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = element(rank, i);
}

static void check_from(const char *what, const int64_t *values, int rank, size_t first,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] != element(rank, first + i))
            wrong(what, i, values[i], element(rank, first + i));
}

static void check_sum(const char *what, const int64_t *values, int p, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] != sum_of(p, first + i))
            wrong(what, i, values[i], sum_of(p, first + i));
}

static ct_status reduces(int kind, size_t count, int root)
{
    const int p = ct_size(group), rank = ct_rank(group);
    ct_work *work = NULL;
    ct_status status;

    count /= kind == 1 ? (size_t)p : 1;
    fill(given, rank, count * (kind == 1 ? (size_t)p : 1));
    switch (kind) {
    case 0:
        status = ct_all_reduce(group, given, got, count, CT_I64, CT_SUM, NULL);
        if (status == CT_OK)
            check_sum("all_reduce", got, p, 0, count);
        return status;
    case 1:
        status = ct_reduce_scatter(group, given, got, count, CT_I64, CT_SUM, NULL);
        if (status == CT_OK)
            check_sum("reduce_scatter", got, p, (size_t)rank * count, count);
        return status;
    case 2:
        status = ct_reduce(group, given, got, count, CT_I64, CT_SUM, root, NULL);
        if (status == CT_OK && rank == root)
            check_sum("reduce", got, p, 0, count);
        return status;
    default:
        status = ct_all_reduce(group, given, got, count, CT_I64, CT_SUM, &work);
        if (status == CT_OK)
            status = ct_wait(work);
        if (status == CT_OK)
            check_sum("all_reduce with a work", got, p, 0, count);
        return status;
    }
}

static ct_status moves(int kind, size_t count, int root)
{
    const int p = ct_size(group), rank = ct_rank(group);
    ct_status status;

    count /= (size_t)p;
    fill(given, rank, count * (size_t)p);
    switch (kind) {
    case 0:
        memcpy(got, given, count * sizeof *got);
        status = ct_broadcast(group, got, count, CT_I64, root, NULL);
        if (status == CT_OK)
            check_from("broadcast", got, root, 0, count);
        return status;
    case 1:
        status = ct_all_gather(group, given, got, count, CT_I64, NULL);
        for (int r = 0; r < p && status == CT_OK; r++)
            check_from("all_gather", got + (size_t)r * count, r, 0, count);
        return status;
    case 2:
        status = ct_all_to_all(group, given, got, count, CT_I64, NULL);
        for (int r = 0; r < p && status == CT_OK; r++)
            check_from("all_to_all", got + (size_t)r * count, r, (size_t)rank * count, count);
        return status;
    default:
        status = ct_scatter(group, given, got, count, CT_I64, root, NULL);
        if (status == CT_OK)
            check_from("scatter", got, root, (size_t)rank * count, count);
        return status;
    }
}

static ct_status ring(size_t count)
{
    const int p = ct_size(group), rank = ct_rank(group), left = (rank + p - 1) % p;
    ct_work *going = NULL, *coming = NULL;
    ct_status status, other;

    if (p == 1)
        return CT_OK;
    fill(given, rank, count);
    status = ct_irecv(group, got, count, CT_I64, left, 1, &coming);
    if (status == CT_OK)
        status = ct_isend(group, given, count, CT_I64, (rank + 1) % p, 1, &going);
    other = ct_wait(coming);
    status = status == CT_OK ? other : status;
    other = ct_wait(going);
    status = status == CT_OK ? other : status;
    if (status == CT_OK)
        check_from("irecv", got, left, 0, count);
    return status;
}

static ct_status halves(size_t count)
{
    ct_group *half = NULL;
    ct_status status = ct_split_group(group, ct_rank(group) % 2, 0, &half);

    if (status != CT_OK)
        return status;
    fill(given, ct_rank(half), count);
    status = ct_all_reduce(half, given, got, count, CT_I64, CT_SUM, NULL);
    if (status == CT_OK)
        check_sum("all_reduce of a half", got, ct_size(half), 0, count);
    ct_destroy_process_group(half);
    return status;
}

static ct_status store(void)
{
    char key[64], value[64], wanted[64];
    const int p = ct_size(group), rank = ct_rank(group);
    void *bytes = NULL;
    size_t size = 0;
    ct_status status;

    snprintf(key, sizeof key, "%lld/%d/%d", (long long)step, p, rank);
    snprintf(value, sizeof value, "of %d", rank);
    status = ct_store_set(ct_store_default(), key, value, strlen(value));
    snprintf(key, sizeof key, "%lld/%d/%d", (long long)step, p, (rank + 1) % p);
    snprintf(wanted, sizeof wanted, "of %d", (rank + 1) % p);
    if (status == CT_OK)
        status = ct_store_get(ct_store_default(), key, -1, &bytes, &size);
    if (status == CT_OK && (size != strlen(wanted) || memcmp(bytes, wanted, size)))
        wrong("store", 0, (int64_t)size, (int64_t)strlen(wanted));
    free(bytes);
    return status;
}

static ct_status one_step(uint64_t seed)
{
    const uint64_t dice = mix(seed + (uint64_t)step);
    const size_t sizes[] = { 1, 8, 100, 1000, 5000, MOST };
    const size_t count = sizes[dice % 6] - (dice >> 8) % sizes[dice % 6] / 3;
    const int root = (int)((dice >> 16) % (uint64_t)ct_size(group));

    switch ((dice >> 32) % 13) {
    case 0:
        return ct_barrier(group, NULL);
    case 1:
        return ring(count);
    case 2:
        return halves(count);
    case 3:
        return store();
    case 4:
    case 5:
    case 6:
    case 7:
        return moves((int)((dice >> 32) % 13) - 4, count, root);
    default:
        return reduces((int)((dice >> 32) % 13) % 4, count, root);
    }
}

/* ---- Going on --------------------------------------------------------------------- */

/* The same step on all: some have come further than others. */
static ct_status meet(void)
{
    int64_t mine = step;

    return ct_all_reduce(group, &mine, &step, 1, CT_I64, CT_MAX, NULL);
}

static ct_status survive(ct_status status)
{
    while (status != CT_OK && getenv("CHAOS_SHRINK")) {
        ct_group *survivors = NULL;

        if (ct_shrink_group(group, 15000, &survivors) != CT_OK)
            return status;
        if (group)
            ct_destroy_process_group(group);
        group = survivors;
        note("shrunk", "%d ranks\n", ct_size(group));
        status = meet();
    }
    return status;
}

/* ---- Taking away -------------------------------------------------------------------- */

static void take_away(int64_t now)
{
    const char *text = getenv("CHAOS_LIMIT");
    char what[16];
    int victim, when, room, kind;
    long pages = 0;
    FILE *statm;
    struct rlimit limit;

    if (limited || !text || sscanf(text, "%15[a-z]:%d:%d:%d", what, &victim, &when, &room) != 4
        || victim != world_rank || now < when)
        return;
    limited = 1;
    statm = fopen("/proc/self/statm", "re");
    if (!statm || fscanf(statm, "%ld", &pages) != 1)
        return;
    fclose(statm);
    kind = strcmp(what, "memory") ? RLIMIT_NOFILE : RLIMIT_AS;
    limit.rlim_cur = limit.rlim_max = kind == RLIMIT_AS
                                          ? (rlim_t)(pages + room) * 4096
                                          : (rlim_t)(descriptors_of("/proc/self/fd") + room);
    if (setrlimit(kind, &limit) == 0)
        fprintf(stderr, "chaos_worker: rank %d: %s is limited at step %lld\n", world_rank, what,
                (long long)now);
}

/* What befalls a rank befalls it once: an attempt that follows is spared. */
static void first_attempt_only(void)
{
    char path[512];

    snprintf(path, sizeof path, "%s/seen.%d", getenv("CHAOS_DIR"), world_rank);
    if (access(path, F_OK) == 0) {
        unsetenv("CT_FAULT");
        limited = 1;
    }
    note("seen", "%d\n", getpid());
}

/* What ctrun had in the first attempt; 0: this is it. */
static int first_noted(void)
{
    char path[4096];
    FILE *file;
    int first = 0;

    snprintf(path, sizeof path, "%s/fds.%d", getenv("CHAOS_DIR"), world_rank);
    file = fopen(path, "re");
    if (file && fscanf(file, "%d", &first) != 1)
        first = 0;
    if (file)
        fclose(file);
    return first;
}

/* A connection that it is about to close is no leak: what is more than before is looked at again.
 */
static void look_at_ctrun(void)
{
    char path[64];
    const int saved = world_rank;
    int first, now;

    snprintf(path, sizeof path, "/proc/%d/fd", getppid());
    if (ct_local_rank() != 0)
        return;
    world_rank = atoi(getenv("GROUP_RANK"));
    first = first_noted();
    now = descriptors_of(path);
    for (int look = 0; first > 0 && now > first && look < 100; look++) {
        usleep(10000);
        now = descriptors_of(path);
    }
    note("fds", "%d\n", now);
    world_rank = saved;
}

static int64_t ms_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(void)
{
    const uint64_t seed = strtoull(getenv("CHAOS_SEED"), NULL, 10);
    const int64_t end = ms_now() + atoi(getenv("CHAOS_MS"));
    int32_t goes_on = 1;
    ct_status status;

    world_rank = atoi(getenv("RANK"));
    descriptors_at_start = descriptors_of("/proc/self/fd");
    first_attempt_only();
    note("pid", "%d\n", getpid());
    take_away(0);
    if (ct_init_process_group(NULL) != CT_OK)
        gave_up();
    unsetenv("CT_FAULT"); /* the survivors' group would begin it anew */
    status = ct_barrier(CT_WORLD, NULL);
    if (status == CT_OK)
        look_at_ctrun();
    while (goes_on) {
        step++;
        take_away(step);
        if (status == CT_OK)
            status = one_step(seed);
        goes_on = ms_now() < end;
        if (status == CT_OK)
            status = ct_broadcast(group, &goes_on, 1, CT_I32, 0, NULL);
        if (status != CT_OK) {
            goes_on = 1;
            status = survive(status);
        }
        if (status != CT_OK)
            gave_up();
    }
    leave(0);
}
