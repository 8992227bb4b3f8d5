/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - starts a process with vfork and exec.
 *
 * A fork copies page tables only to throw them away, so vfork halves the time per worker. The child
 * runs in ctrun's memory and on its stack until its exec; it makes system calls on memory that does
 * not change and leaves by exec or _exit.  All signals are blocked, so no handler runs in it.  If a
 * round has several workers, a process between ctrun and the workers (the starter) gives them a
 * common session. */
#include "launcher/workers/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The terminal ------------------------------------------------------------ */

/* Job control, as a shell does it for one job.  The worker has its own process group in our
 * session, and that group is the terminal's foreground group: the worker may read the terminal, and
 * Ctrl-C reaches it and not ctrun.  The shell knows only ctrun, so it would not notice that the
 * worker was stopped. */

int foreground_is_ours(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Gives the terminal to a process group of our session.  Async-signal-safe, since the child
 * calls it before its exec.  Blocks SIGTTOU, with which tcsetpgrp() would stop ctrun in the
 * background. */
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
    kill(0, SIGTSTP); /* if no shell waits for us, the kernel ignores it */
    return foreground_continued(pid);
}

int foreground_continued(pid_t pid)
{
    const int lent = foreground_is_ours() && foreground_give(pid) == 0;

    kill(-pid, SIGCONT);
    return lent;
}

/* ---- A child ----------------------------------------------------------------- */

/* Sets ignored signals back to their defaults: they would stay ignored over exec, and SIGINT could
 * not stop the program.  Then unblocks all signals. */
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

/* Puts the process into its own group, so that one kill() reaches its whole tree. */
static int group_of_its_own(const struct spawn_args *args)
{
    if (!args->foreground && !joins_session(args))
        return setsid();
    if (setpgid(0, 0) < 0)
        return -1;
    return args->foreground ? foreground_give(getpid()) : 0;
}

/* Binds to CPUs and memory before the exec, so that the program's first page is near its CPUs.
 * Memory is only a preference; placement.c has logged if the kernel refuses it. */
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

/* Runs in the child.  *cause is in the parent's memory, which the child shares until the exec.  If
 * vfork is a fork (some emulators), the parent can't read *cause, hence the exit codes. */
static _Noreturn void spawn_child(const struct spawn_args *args, pid_t parent, volatile int *cause)
{
    /* Before the program can do anything, even kill us: see guard.c. */
    if (args->announce)
        atomic_store(args->announce, getpid());
    if (place(args) < 0) {
        *cause = -errno; /* negative: the error is not from exec */
        _exit(126);
    }
    if (group_of_its_own(args) >= 0
        && (args->outlives || prctl(PR_SET_PDEATHSIG, SIGKILL) == 0) /* it dies when ctrun dies */
        && getppid() == parent /* and ctrun had not died before that */
        && (args->in < 0 || dup2(args->in, STDIN_FILENO) >= 0)
        && (args->out < 0 || dup2(args->out, STDOUT_FILENO) >= 0)
        && (args->err < 0 || dup2(args->err, STDERR_FILENO) >= 0)
        && (!args->descriptors || setrlimit(RLIMIT_NOFILE, args->descriptors) == 0)
        && signals_as_new(args->ignored) == 0) {
        /* Workers inherit 0, 1 and 2, as under torchrun, and `keep`.  An old kernel refuses this
         * call, but our own descriptors are CLOEXEC anyway. */
        close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
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
 * sched_yield() does not hand a processor to a task of another group.  So the workers of a round
 * share a session, which has no terminal.  Only a process of that session can start them, and ctrun
 * stays in the session of its terminal.  So the starter starts them: a process that shares ctrun's
 * memory and descriptors, as a thread does.  CLONE_PARENT makes ctrun the parent of each worker:
 * ctrun reaps the worker, and the worker dies when ctrun dies.
 *
 * ctrun and the starter take turns.  While one runs the other waits, since they also share errno.
 * When the starter ends, the kernel writes 0 to ->turn and wakes ctrun (CLONE_CHILD_CLEARTID). */
enum { ENDED, OF_CTRUN, OF_STARTER };

#define STACK_BYTES (64 << 10)
#define UNSUPPORTED (-2)

/* Does nothing if the starter has ended. */
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
    static _Alignas(64) unsigned char stack[STACK_BYTES]; /* the worker's stack until its exec */
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

/* Has the starter start the worker.  Returns as vfork() does in the parent.  UNSUPPORTED: the
 * starter can't do it, and has ended. */
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
    volatile int own, *cause = args->starter ? &args->starter->cause : &own;
    pid_t pid = UNSUPPORTED;

    *execed = *cause = 0;
    if (joins_session(args))
        pid = clone_into_session(args);
    if (pid == UNSUPPORTED)
        pid = vfork(); /* returns when the child no longer uses our memory: after its exec or its
                          end */
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
