/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - see limits.h.
 *
 * Without this check a job that lacks descriptors fails later, with an error of a rank whose
 * connection the store had to close.  So ctrun adds up what it will have open: what its caller left
 * open, its own descriptors (epoll, the store, the guard, the control page, ...), and for each
 * worker a pidfd, a socket for MPI and the streams that pass through ctrun.  If the program
 * connects to the store, its connections come on top: if only they do not fit, ctrun warns. */
#include "launcher/workers/limits.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/util/log.h"

#define OWN 32 /* 20 are open in a job with --events and --trace; others are open for a moment */
#define PLENTY 1000    /* if so many are left over, what the caller left open need not be counted */
#define LEAST_PIDS 301 /* the kernel's least pid_max: with fewer processes it need not be read */

/* Counts open descriptors whose numbers are below `limit`: others do not count against the
 * limit. */
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
    return count - 1; /* without the folder's own descriptor */
}

/* Counts the streams of one worker: two pipes, and two files with --tee.  With --status ctrun keeps
 * the last lines. */
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
    const int pmi = options->mpi == MPI_PMI; /* the program is not known yet */
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

/* 0: the kernel does not say. */
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

/* Checks that processes for `size` workers are allowed.  Does not count other processes of the
 * user: if a fork fails because of them, ctrun logs it then. */
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
