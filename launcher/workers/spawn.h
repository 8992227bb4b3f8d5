/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - starts a process: in its own session, in the session of its round, or on our terminal.
 * The process dies with ctrun. */
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
    pid_t pid;    /* 0: no starter, and each worker gets its own session */
    pid_t parent; /* ctrun */
    _Atomic uint32_t turn;
    const struct spawn_args *args; /* arguments of the next worker; NULL: the starter ends */
    pid_t worker;                  /* that the starter started; -1: clone() failed with ->error */
    int error;
    volatile int cause; /* errno of the worker's exec; negative: -errno of a call before the exec */
};

struct spawn_args {
    const char *path; /* executed without a search */
    char *const *argv;
    char *const *envp;
    int in, out, err;        /* become descriptors 0 to 2; -1: inherited from us */
    _Atomic pid_t *announce; /* where the child announces its group; NULL: nowhere */
    const sigset_t *ignored; /* signals to set back to their defaults */
    int foreground;          /* stays in our session, in its own group, which gets the terminal */
    struct starter *starter; /* NULL: the process leads its own session */
    int outlives;            /* gets no SIGKILL when ctrun dies: it notices that itself */
    const struct rlimit *descriptors; /* limit of open descriptors; NULL: ours */
    const struct cpus *cpus;          /* CPUs to which it is bound; NULL: ours */
    int memory;  /* if bound: the NUMA node whose memory it prefers; -1: no such node */
    int keep[4]; /* other descriptors that it inherits, with the same numbers; below 3: not a
                    descriptor */
};

/* Starts the starter.  ->pid stays 0 if no process can share ctrun's memory (some emulators), or if
 * no more processes are allowed.  The caller blocks all signals, as for spawn(). */
void starter_begin(struct starter *starter);
void starter_end(struct starter *starter);

/* Starts a program, and returns when it runs.  Returns its pid, which is also its process group.
 * -1: errno is that of exec if *execed is 1, else that of fork or of binding to the CPUs.  Reaps a
 * failed child, so that no SIGCHLD names an unknown pid.  The caller blocks all signals. */
pid_t spawn(const struct spawn_args *args, int *execed);

/* ---- The terminal, which one worker (a debugger) may have ------- */

/* Says whether standard input is the terminal of ctrun's session and ctrun may read it now. */
int foreground_is_ours(void);

void foreground_take(void); /* gives the terminal back to ctrun */

/* Stops ctrun after a SIGCHLD if the user stopped that worker (Ctrl-Z), so that the shell gets its
 * terminal.  When ctrun is continued, it continues the worker.  Both functions return whether the
 * worker then has the terminal: not if the shell put ctrun into the background. */
int foreground_stopped(pid_t pid, int lent);
int foreground_continued(pid_t pid);

#endif
