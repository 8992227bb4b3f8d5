/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - vfork and exec.
 *
 * vfork, since a fork copies page tables only to throw them away: it halves the
 * time per worker.  The child runs in ctrun's memory and on its stack until its exec; it makes
 * system calls on memory that does not change and leaves by exec or _exit.  All signals are
 * blocked, so no handler runs in it. */
#include "launcher/workers/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The terminal ------------------------------------------------------------ */

/* Job control, as a shell does it for one job.  The worker has a process group of its own in our
 * session, and that group is the terminal's foreground one: it may read, and Ctrl-C reaches it and
 * not ctrun.  The shell knows only ctrun, so it would not notice that the worker was stopped. */

int foreground_is_ours(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* To a process group of our session.  Async-signal-safe: the child calls it before its exec.  From
 * the background tcsetpgrp() would stop ctrun with SIGTTOU, unless that is blocked. */
static int foreground_give(pid_t group)
{
    sigset_t output, before;
    int status;

    sigemptyset(&output);
    sigaddset(&output, SIGTTOU);
    sigprocmask(SIG_BLOCK, &output, &before);
    status = tcsetpgrp(STDIN_FILENO, group);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

void foreground_take(void)
{
    foreground_give(getpgrp());
}

int foreground_stopped(pid_t pid, int lent)
{
    siginfo_t info = { .si_pid = 0 };

    if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG) < 0 || info.si_pid == 0)
        return lent;
    if (lent)
        foreground_take();
    kill(0, SIGTSTP); /* where no shell waits for us, the kernel passes over it */
    return foreground_continued(pid);
}

int foreground_continued(pid_t pid)
{
    const int lent = foreground_is_ours() && foreground_give(pid) == 0;

    kill(-pid, SIGCONT);
    return lent;
}

/* ---- A child ----------------------------------------------------------------- */

/* An ignored signal stays ignored over exec, and a program that ignores SIGINT
 * could not be stopped by it.  Then the mask: nothing may be blocked. */
static int signals_as_new(const sigset_t *ignored)
{
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        if (sigismember(ignored, number) == 1)
            signal(number, SIG_DFL);
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL);
}

/* One kill() reaches its whole tree. */
static int group_of_its_own(const struct spawn_args *args)
{
    if (!args->foreground)
        return setsid();
    return setpgid(0, 0) < 0 ? -1 : foreground_give(getpid());
}

static int enter_cpus(const struct cpus *cpus)
{
    cpu_set_t mask[CPUS_MOST / CPU_SETSIZE];

    CPU_ZERO_S(sizeof mask, mask);
    for (int cpu = cpus_next(cpus, 0); cpu >= 0; cpu = cpus_next(cpus, cpu + 1))
        CPU_SET_S((size_t)cpu, sizeof mask, mask);
    return sched_setaffinity(0, sizeof mask, mask);
}

/* Before the exec, so that the program's first page is where its CPUs are.  Memory is
 * a preference, and a kernel that refuses it was said to (placement.c). */
static int place(const struct spawn_args *args)
{
    unsigned long nodes[1024 / (8 * sizeof(unsigned long))] = { 0 };
    const size_t bits = 8 * sizeof *nodes;

    if (!args->cpus)
        return 0;
    if (enter_cpus(args->cpus) < 0)
        return -1;
    if (args->memory >= 0 && (size_t)args->memory < 8 * sizeof nodes) {
        nodes[(size_t)args->memory / bits] |= 1UL << (size_t)args->memory % bits;
        syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, 8 * sizeof nodes);
    }
    return 0;
}

/* Runs in the child.  *cause lies in the parent's memory, which the child has until the
 * exec.  Where vfork is a fork (some emulators) the parent can't read it, hence the exit codes. */
static _Noreturn void child(const struct spawn_args *args, pid_t parent, volatile int *cause)
{
    /* Before the program can do anything, even kill us: see guard.c. */
    if (args->announce)
        atomic_store(args->announce, getpid());
    if (place(args) < 0) {
        *cause = -errno; /* negative: not the exec's */
        _exit(126);
    }
    if (group_of_its_own(args) >= 0
        && (args->outlives || prctl(PR_SET_PDEATHSIG, SIGKILL) == 0) /* it dies if ctrun does */
        && getppid() == parent /* and ctrun had not died before that */
        && (args->in < 0 || dup2(args->in, STDIN_FILENO) >= 0)
        && (args->out < 0 || dup2(args->out, STDOUT_FILENO) >= 0)
        && (args->err < 0 || dup2(args->err, STDERR_FILENO) >= 0)
        && (!args->descriptors || setrlimit(RLIMIT_NOFILE, args->descriptors) == 0)
        && signals_as_new(args->ignored) == 0) {
        /* Workers inherit 0, 1 and 2, as under torchrun, and what the job keeps for them.  An
         * old kernel says no: our own are CLOEXEC anyway. */
        close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        for (size_t i = 0; i < sizeof args->keep / sizeof *args->keep; i++)
            if (args->keep[i] > STDERR_FILENO)
                fcntl(args->keep[i], F_SETFD, 0);
        execve(args->path, args->argv, args->envp);
    }
    *cause = errno;
    _exit(errno == ENOENT ? 127 : 126);
}

pid_t spawn(const struct spawn_args *args, int *execed)
{
    const pid_t parent = getpid();
    volatile int cause = 0;
    pid_t pid;

    *execed = 0;
    pid = vfork(); /* returns when the child has our memory no longer: after its exec, or its end */
    if (pid == 0)
        child(args, parent, &cause);
    if (pid < 0 || cause == 0)
        return pid;
    *execed = cause > 0;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    errno = abs(cause);
    return -1;
}
