/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - starts a process with vfork() and exec.
 *
 * fork() would copy page tables that exec then discards, so vfork() halves the time per worker.
 * The child runs in ctrun's memory and on ctrun's stack until its exec.  Until then it makes only
 * system calls on memory that does not change, and it ends by exec or _exit().  All signals are
 * blocked, so no handler runs in the child.  If a round has several workers, a process called the
 * starter starts them, so that they share a session. */
#include "launcher/workers/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/util/forks.h"

/* ---- The terminal ------------------------------------------------------------ */

/* ctrun does job control for a worker that gets the terminal, as a shell does for a job.  The
 * worker has its own process group in ctrun's session, which is the terminal's foreground group.
 * So the worker may read the terminal, and Ctrl-C reaches the worker and not ctrun.  The shell
 * waits only for ctrun, so ctrun must stop itself when the user stops the worker. */

int foreground_is_ours(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Makes a process group of ctrun's session the foreground group.  Must be async-signal-safe, since
 * the child calls it before its exec.  Blocks SIGTTOU, by which tcsetpgrp() would stop a ctrun that
 * is in the background. */
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
    kill(0, SIGTSTP); /* no effect in an orphaned group */
    return foreground_continued(pid);
}

int foreground_continued(pid_t pid)
{
    const int lent = foreground_is_ours() && foreground_give(pid) == 0;

    kill(-pid, SIGCONT);
    return lent;
}

/* ---- A child ----------------------------------------------------------------- */

/* Sets ignored signals back to their default dispositions, then unblocks all signals.  Signals stay
 * ignored over exec, so SIGINT, for example, could not stop the program. */
static int signals_as_new(const sigset_t *ignored)
{
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        if (sigismember(ignored, number) == 1)
            signal(number, SIG_DFL);
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL);
}

static int joins_session(const struct spawn_args *args)
{
    return !args->foreground && args->starter && args->starter->pid > 0;
}

/* Puts the process into its own process group, so that one kill() reaches all its descendants. */
static int group_of_its_own(const struct spawn_args *args)
{
    if (!args->foreground && !joins_session(args))
        return setsid();
    if (setpgid(0, 0) < 0)
        return -1;
    return args->foreground ? foreground_give(getpid()) : 0;
}

/* Binds the process to CPUs and memory before the exec, so that the program's first page is near
 * its CPUs.  The NUMA node is only a preference.  If the kernel refuses it, placement.c has logged
 * that. */
static int place(const struct spawn_args *args)
{
    unsigned long nodes[1024 / (8 * sizeof(unsigned long))] = { 0 };
    const size_t bits = 8 * sizeof *nodes;

    if (!args->cpus)
        return 0;
    if (cpus_enter(args->cpus) < 0)
        return -1;
    if (args->memory >= 0 && (size_t)args->memory < 8 * sizeof nodes) {
        nodes[(size_t)args->memory / bits] |= 1UL << (size_t)args->memory % bits;
        syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, 8 * sizeof nodes);
    }
    return 0;
}

/* Runs in the child until the exec.  *cause is in the parent's memory, which the child shares.  In
 * some emulators vfork() is a fork() and the parent can't see *cause, so the child also uses exit
 * codes. */
static _Noreturn void spawn_child(const struct spawn_args *args, pid_t parent, volatile int *cause)
{
    /* Announces the pid before the program runs, since the program might kill ctrun (guard.c). */
    if (args->announce)
        atomic_store(args->announce, getpid());
    if (place(args) < 0) {
        *cause = -errno; /* negative, since the error is not from exec */
        _exit(126);
    }
    if (group_of_its_own(args) >= 0
        && (args->outlives || prctl(PR_SET_PDEATHSIG, SIGKILL) == 0) /* the child dies with ctrun */
        && getppid() == parent /* false if ctrun died before the prctl() */
        && (args->in < 0 || dup2(args->in, STDIN_FILENO) >= 0)
        && (args->out < 0 || dup2(args->out, STDOUT_FILENO) >= 0)
        && (args->err < 0 || dup2(args->err, STDERR_FILENO) >= 0)
        && (!args->descriptors || setrlimit(RLIMIT_NOFILE, args->descriptors) == 0)
        && signals_as_new(args->ignored) == 0) {
        /* Workers inherit descriptors 0, 1 and 2, as under torchrun, and those in `keep`. */
        descriptors_end(STDERR_FILENO + 1, 1);
        for (size_t i = 0; i < sizeof args->keep / sizeof *args->keep; i++)
            if (args->keep[i] > STDERR_FILENO)
                fcntl(args->keep[i], F_SETFD, 0);
        execve(args->path, args->argv, args->envp);
    }
    *cause = errno;
    _exit(errno == ENOENT ? 127 : 126);
}

/* ---- One session for a round ----------------------------------------------------- */

/* With kernel.sched_autogroup_enabled the scheduler treats each session as a group, and
 * sched_yield() does not yield a processor to a task of another group.  So the workers of a round
 * share a session, which has no terminal.  Only a process in that session can start them, and ctrun
 * must stay in the session of its terminal.  So another process, the starter, starts the workers.
 * The starter shares ctrun's memory and descriptors, as a thread does.  CLONE_PARENT makes ctrun
 * the parent of each worker, so that ctrun can reap the worker and the worker dies when ctrun dies.
 *
 * ctrun and the starter take turns: while one of them runs, the other waits, since they also share
 * errno.  When the starter ends, the kernel writes 0 (ENDED) to starter->turn and wakes ctrun
 * (CLONE_CHILD_CLEARTID). */
enum { ENDED, OF_CTRUN, OF_STARTER };

#define STACK_BYTES (64 << 10)
#define UNSUPPORTED (-2)

/* Changes the turn and wakes the other side.  Does not change the turn if the starter has ended. */
static void give_turn(struct starter *starter, uint32_t from, uint32_t to)
{
    atomic_compare_exchange_strong(&starter->turn, &from, to);
    syscall(SYS_futex, &starter->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void wait_while(struct starter *starter, uint32_t turn)
{
    while (atomic_load(&starter->turn) == turn)
        syscall(SYS_futex, &starter->turn, FUTEX_WAIT, turn, NULL, NULL, 0);
}

static int run_worker(void *arg)
{
    struct starter *starter = arg;

    spawn_child(starter->args, starter->parent, &starter->cause);
}

static int run_starter(void *arg)
{
    static _Alignas(64) unsigned char stack[STACK_BYTES]; /* worker's stack until its exec */
    struct starter *starter = arg;

    if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != starter->parent)
        _exit(1);
    for (;;) {
        give_turn(starter, OF_STARTER, OF_CTRUN);
        wait_while(starter, OF_CTRUN);
        if (!starter->args)
            _exit(0);
        starter->worker = clone(run_worker, stack + STACK_BYTES,
                                CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD, starter);
        starter->error = errno;
    }
}

static void starter_reap(struct starter *starter)
{
    while (waitpid(starter->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    starter->pid = 0;
}

void starter_begin(struct starter *starter)
{
    static _Alignas(64) unsigned char stack[STACK_BYTES];
    pid_t pid;

    *starter = (struct starter){ .parent = getpid(), .turn = OF_STARTER };
    pid = clone(run_starter, stack + STACK_BYTES,
                CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID | SIGCHLD, starter, NULL, NULL,
                &starter->turn);
    if (pid < 0)
        return;
    starter->pid = pid;
    wait_while(starter, OF_STARTER);
    if (atomic_load(&starter->turn) == ENDED)
        starter_reap(starter);
}

void starter_end(struct starter *starter)
{
    if (starter->pid == 0)
        return;
    starter->args = NULL;
    give_turn(starter, OF_CTRUN, OF_STARTER);
    starter_reap(starter);
}

/* Makes the starter start the worker.  Returns the worker's pid; -1 with errno set on failure;
 * UNSUPPORTED if the kernel can't do so, after it ended the starter. */
static pid_t clone_into_session(const struct spawn_args *args)
{
    struct starter *starter = args->starter;

    starter->args = args;
    give_turn(starter, OF_CTRUN, OF_STARTER);
    wait_while(starter, OF_STARTER);
    if (atomic_load(&starter->turn) == ENDED) {
        starter_reap(starter);
        errno = ECHILD;
        return -1;
    }
    if (starter->worker < 0 && starter->error == EINVAL) {
        starter_end(starter);
        return UNSUPPORTED;
    }
    errno = starter->error;
    return starter->worker;
}

pid_t spawn(const struct spawn_args *args, int *execed)
{
    const pid_t parent = getpid();
    volatile int own, *volatile cause = args->starter ? &args->starter->cause : &own;
    pid_t pid = UNSUPPORTED;

    *execed = *cause = 0;
    if (joins_session(args))
        pid = clone_into_session(args);
    if (pid == UNSUPPORTED)
        pid = vfork(); /* returns in the parent after the child's exec or end */
    if (pid == 0)
        spawn_child(args, parent, cause);
    if (pid < 0 || *cause == 0)
        return pid;
    *execed = *cause > 0;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    errno = abs(*cause);
    return -1;
}
