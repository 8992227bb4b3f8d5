/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c - kills the workers' process groups after a kill -9 of ctrun.
 *
 * PR_SET_PDEATHSIG kills the workers themselves, but not the processes that they started.  The
 * guard is a fork of ctrun in its own session.  The guard blocks all signals and reads from a pipe.
 * When ctrun dies, for whatever reason, the guard reads EOF and kills the groups that are left.  A
 * descendant that left its worker's group (setsid(), setpgid()) survives.
 *
 * Each worker writes its process group to memory that the guard shares before the worker's exec.
 * If ctrun wrote the group instead, the program could run before its group is known.  ctrun removes
 * groups that ended.  A message to the guard instead of shared memory would wake the guard, which
 * costs two context switches per worker, and each switch a time slice on a busy machine. */
#include "launcher/workers/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/util/forks.h"

/* Leaves ctrun's session and closes all descriptors except the pipe, which becomes descriptor 0.
 * If the guard kept 1 or 2 open, the cat of `ctrun | cat` would wait for the guard. */
static void leave_the_job(int pipe)
{
    sigset_t all;

    setsid();
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_NAME, "ct-guard");
    dup2(pipe, 0);
    descriptors_end(1, 0);
}

/* Runs in the guard.  ctrun had no other thread at the fork, so no lock is held here. */
static _Noreturn void watch(int pipe, const struct guard *guard, const struct guard_last *last)
{
    char nothing;

    leave_the_job(pipe);
    while (read(0, &nothing, 1) < 0 && errno == EINTR)
        continue;
    for (int i = 0; i < guard->most; i++) {
        const pid_t group = atomic_load(&guard->groups[i]);

        if (group > 0)
            kill(-group, SIGKILL);
    }
    run_folder_remove(last->folder);
    last->words(last->arg);
    _exit(0);
}

static size_t guard_bytes_of(const struct guard *guard)
{
    return (size_t)guard->most * sizeof *guard->groups;
}

int guard_start(struct guard *guard, int most, const struct guard_last *last)
{
    int ends[2];

    *guard = (struct guard){ .pipe = -1, .most = most };
    guard->groups = mmap(NULL, guard_bytes_of(guard), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (guard->groups == MAP_FAILED) {
        guard->groups = NULL;
        return -1;
    }
    if (pipe2(ends, O_CLOEXEC) < 0) {
        guard_stop(guard);
        return -1;
    }
    guard->pipe = ends[1];
    guard->pid = fork();
    if (guard->pid == 0)
        watch(ends[0], guard, last);
    close(ends[0]);
    if (guard->pid > 0)
        return 0;
    guard_stop(guard);
    return -1;
}

_Atomic pid_t *guard_place(const struct guard *guard, int local_rank)
{
    return guard->groups && local_rank < guard->most ? &guard->groups[local_rank] : NULL;
}

void guard_remove(const struct guard *guard, int local_rank)
{
    _Atomic pid_t *place = guard_place(guard, local_rank);

    if (place)
        atomic_store(place, 0);
}

int guard_was_killed(struct guard *guard)
{
    if (guard->pid <= 0 || waitpid(guard->pid, NULL, WNOHANG) != guard->pid)
        return 0;
    guard->pid = 0; /* the kernel may reuse the pid */
    return 1;
}

/* Stops the guard, unless it was killed before. */
void guard_stop(struct guard *guard)
{
    const int cause = errno;

    if (guard->pid > 0)
        kill(guard->pid, SIGKILL); /* before it reads EOF, which means ctrun's death */
    if (guard->pipe >= 0)
        close(guard->pipe);
    while (guard->pid > 0 && waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (guard->groups)
        munmap(guard->groups, guard_bytes_of(guard));
    *guard = (struct guard){ .pipe = -1 };
    errno = cause;
}
