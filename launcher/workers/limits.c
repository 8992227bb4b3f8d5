/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - see limits.h.
 *
 * Without this check, a job that lacks descriptors fails later, with an error of a rank whose
 * connection the store had to close.  So ctrun counts the descriptors that it will have open: those
 * that its caller left open, its own (epoll, the store, the guard, the control page, ...), and for
 * each worker a pidfd, a socket for MPI and the streams that pass through ctrun.  The program's
 * connections to the store are counted separately, since ctrun only warns if these exceed the
 * limit. */
#include "launcher/workers/limits.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/util/log.h"

#define OWN 32 /* ctrun's own descriptors: 20 with --events and --trace, the rest for short use */
#define PLENTY 1000    /* with so many to spare, the caller's open descriptors are not counted */
#define LEAST_PIDS 301 /* the kernel's smallest pid_max; a job with fewer processes always fits */

/* Returns the number of open descriptors below `limit`.  Higher descriptors do not count against
 * the limit. */
static long open_already(long limit)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    long count = 0;

    if (!folder)
        return errno == EMFILE ? limit : STDERR_FILENO + 1;
    while ((entry = readdir(folder)))
        count += *entry->d_name != '.' && atol(entry->d_name) < limit;
    closedir(folder);
    return count - 1; /* without opendir()'s descriptor */
}

/* Returns the number of ctrun's descriptors for one worker's streams: two pipes, and two files with
 * --tee; 0 if the worker inherits ctrun's streams.  --status needs the pipes for the last lines. */
static int streams_of(const struct options *options)
{
    const struct stream_spec *tee = &options->tee;
    int teed = tee->all;

    for (size_t i = 0; i < sizeof tee->ranks; i++)
        teed |= tee->ranks[i];
    if (teed)
        return 4;
    return options->status.is_on || strcmp(options->prefix, "auto") != 0 || options->show
                   || options->local_ranks_filter || isatty(STDOUT_FILENO) || isatty(STDERR_FILENO)
               ? 2
               : 0;
}

long limits_descriptors(int size, int streams)
{
    return OWN + (long)size * (1 + streams);
}

static int check_descriptors(const struct options *options, int size, long clients, long limit)
{
    const char *plural = size == 1 ? "" : "s";
    const int pmi = options->mpi == MPI_PMI; /* for MPI_AUTO, the program is not known yet */
    long needed = limits_descriptors(size, pmi + streams_of(options));

    if (needed + clients + PLENTY <= limit)
        return 0;
    needed += open_already(limit);
    if (needed > limit) {
        log_line(LOG_ERROR,
                 "ctrun needs up to %ld descriptors for %d worker%s, and %ld are allowed "
                 "(ulimit -Hn)",
                 needed, size, plural, limit);
        return 1;
    }
    if (needed + clients > limit)
        log_line(LOG_WARN,
                 "ctrun needs up to %ld descriptors for %d worker%s and %ld connections to the "
                 "store, and %ld are allowed (ulimit -Hn): some workers may not reach the store",
                 needed + clients, size, plural, clients, limit);
    return 0;
}

/* Returns kernel.pid_max; 0 if it can't be read. */
static long pid_max(void)
{
    FILE *file = fopen("/proc/sys/kernel/pid_max", "re");
    char text[32] = "";

    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
    }
    return atol(text);
}

/* Checks that processes for `size` workers are allowed.  Does not count the user's other processes.
 * If fork() fails because of those, ctrun logs the error then. */
static int check_processes(int size)
{
    const long needed = (long)size + 2 + (size > 1); /* ctrun, its guard and the starter */
    const long pids = needed >= LEAST_PIDS ? pid_max() : 0;
    struct rlimit users;

    if (pids > 0 && needed > pids) {
        log_line(LOG_ERROR,
                 "--nproc-per-node=%d: this machine allows %ld processes (kernel.pid_max)", size,
                 pids);
        return 1;
    }
    if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &users) == 0 && (rlim_t)needed > users.rlim_cur) {
        log_line(LOG_ERROR, "--nproc-per-node=%d: this user may have %ld processes (ulimit -u)",
                 size, (long)users.rlim_cur);
        return 1;
    }
    return 0;
}

int limits_check(const struct options *options, int size, long clients, struct rlimit *descriptors)
{
    struct rlimit raised;

    getrlimit(RLIMIT_NOFILE, descriptors);
    raised = *descriptors;
    raised.rlim_cur = raised.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &raised) < 0)
        raised = *descriptors;
    if (check_processes(size) != 0)
        return 1;
    return check_descriptors(options, size, clients,
                             raised.rlim_cur < LONG_MAX ? (long)raised.rlim_cur : LONG_MAX);
}
