/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - starts a process in its own session, in the session of its round, or on ctrun's
 * terminal.  The kernel kills the process when ctrun dies. */
#ifndef LAUNCHER_WORKERS_SPAWN_H
#define LAUNCHER_WORKERS_SPAWN_H

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "runtime/util/cpu_set.h"

/* The process that starts the workers of a round, so that they share a session (spawn.c).  The
 * struct must not move before starter_end(). */
struct starter {
    pid_t pid;    /* pid of the starter; 0 if none, and each worker then gets its own session */
    pid_t parent; /* pid of ctrun */
    _Atomic uint32_t turn;         /* whether ctrun or the starter may run; a futex */
    const struct spawn_args *args; /* arguments of the next worker; NULL tells the starter to end */
    pid_t worker;                  /* pid of the last worker; -1 if clone() failed with `error` */
    int error;                     /* errno of clone() */
    volatile int cause; /* 0, errno of a failed exec, or -errno of a failed call before the exec */
};

struct spawn_args {
    const char *path; /* file to execute, without a search along PATH */
    char *const *argv;
    char *const *envp;
    int in, out, err;        /* become descriptors 0 to 2; the child inherits ctrun's if -1 */
    _Atomic pid_t *announce; /* where the child writes its pid, for the guard; NULL if nowhere */
    const sigset_t *ignored; /* signals to set back to their default dispositions */
    int foreground;          /* true if the child's group in ctrun's session gets the terminal */
    struct starter *starter; /* NULL if the child leads its own session */
    int outlives;            /* true if the child ends by itself when ctrun dies, not by SIGKILL */
    const struct rlimit *descriptors; /* limit of open descriptors; NULL for ctrun's limit */
    const struct cpus *cpus;          /* CPUs to which the child is bound; NULL for ctrun's CPUs */
    int memory;                       /* preferred NUMA node of a child that is bound; -1 if none */
    int keep[4]; /* other descriptors that the child inherits, with the same numbers; a value below
                    3 is not a descriptor */
};

/* Starts the starter.  starter->pid stays 0 if no process can share ctrun's memory, as in some
 * emulators, or if no more processes are allowed.  The caller must block all signals. */
void starter_begin(struct starter *starter);
void starter_end(struct starter *starter);

/* Starts a program and waits until it runs.  Returns its pid, which is also its process group.
 * Returns -1 on failure; then errno is from exec if *execed is 1, else from fork or from binding to
 * CPUs.  Reaps a failed child, so that no SIGCHLD is about an unknown pid.  The caller must block
 * all signals. */
pid_t spawn(const struct spawn_args *args, int *execed);

/* ---- The terminal, which one worker (a debugger) may have ------- */

/* Returns 1 if standard input is the terminal of ctrun's session and ctrun is in the foreground. */
int foreground_is_ours(void);

void foreground_take(void); /* makes ctrun's process group the foreground group again */

/* Called after a SIGCHLD.  If the user stopped the worker (Ctrl-Z), stops ctrun, too, so that the
 * shell gets the terminal; when the shell continues ctrun, continues the worker.  Returns 1 if the
 * worker has the terminal.  `lent` is true if the worker had the terminal before. */
int foreground_stopped(pid_t pid, int lent);
/* Continues the worker after the shell has continued ctrun.  Returns 1 if the worker has the
 * terminal; 0 if the shell put ctrun into the background. */
int foreground_continued(pid_t pid);

#endif
