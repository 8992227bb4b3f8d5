/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c - nothing of the job survives a kill -9 of ctrun.
 *
 * PR_SET_PDEATHSIG kills the workers themselves, but not what they started.
 * The guard is a fork of ctrun in a session of its own, deaf to signals, which
 * holds nothing but one end of a socket.  Over it each worker tells its process
 * group before its exec (positive), ctrun each that ended (negative); told by
 * ctrun, a group would be unknown while its program already runs.  When ctrun
 * dies, however it does, the guard reads EOF and kills the groups that are left. */
#include "launcher/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/close_range.h>

static void note(pid_t *groups, int most, pid_t message)
{
    const pid_t old = message > 0 ? 0 : -message, new = message > 0 ? message : 0;

    for (int i = 0; i < most; i++)
        if (groups[i] == old) {
            groups[i] = new;
            return;
        }
}

/* Descriptors: 0 is the pipe.  Keeping 1 or 2 would keep `ctrun | cat` waiting. */
static void leave_the_job(int pipe)
{
    sigset_t all;

    setsid();
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_NAME, "ct-guard");
    dup2(pipe, 0);
    if (close_range(1, ~0U, 0) < 0) /* before Linux 5.9 */
        for (int fd = 1; fd < 1024; fd++)
            close(fd);
}

/* Runs in the guard.  Only async-signal-safe calls. */
static _Noreturn void watch(int pipe, pid_t *groups, int most, const struct error_files *files)
{
    pid_t messages[64];
    ssize_t got;

    leave_the_job(pipe);
    while ((got = read(0, messages, sizeof messages)) > 0 || (got < 0 && errno == EINTR))
        for (ssize_t i = 0; i < got / (ssize_t)sizeof *messages; i++)
            note(groups, most, messages[i]);
    for (int i = 0; i < most; i++)
        if (groups[i] > 0)
            kill(-groups[i], SIGKILL);
    error_files_remove(files);
    _exit(0);
}

int guard_start(struct guard *guard, int most, const struct error_files *files)
{
    pid_t *groups = calloc((size_t)most, sizeof *groups);
    int ends[2];

    if (!groups)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        free(groups);
        return -1;
    }
    guard->pid = fork();
    if (guard->pid == 0) {
        close(ends[1]);
        watch(ends[0], groups, most, files);
    }
    close(ends[0]);
    free(groups);
    guard->pipe = ends[1];
    if (guard->pid > 0)
        return 0;
    close(ends[1]);
    *guard = (struct guard){ 0, -1 };
    return -1;
}

/* A guard that somebody killed does not stop the job. */
void guard_remove(const struct guard *guard, pid_t group)
{
    const pid_t message = -group;

    if (guard->pipe >= 0)
        send(guard->pipe, &message, sizeof message, MSG_NOSIGNAL);
}

void guard_stop(struct guard *guard)
{
    if (guard->pid > 0) {
        kill(guard->pid, SIGKILL); /* before it can take our EOF for a death */
        close(guard->pipe);
        while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    *guard = (struct guard){ 0, -1 };
}
