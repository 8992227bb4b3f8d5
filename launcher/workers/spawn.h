/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - starts one process, in its own session, in the session of its round, or on our
 * terminal.  The process dies with ctrun. */
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
    const struct spawn_args *args; /* of the worker to start next; NULL: the starter ends */
    pid_t worker;                  /* the worker that it started; -1: clone() failed with ->error */
    int error;
    volatile int cause; /* errno of the worker's exec; negative: of a call before its exec */
};

struct spawn_args {
    const char *path; /* executed as it is: no look-up */
    char *const *argv;
    char *const *envp;
    int in, out, err;        /* to be descriptors 0 to 2; -1: ours are inherited */
    _Atomic pid_t *announce; /* where the child announces its group; NULL: nowhere */
    const sigset_t *ignored; /* signals to set back to their defaults */
    int foreground;          /* stays in our session: a group of its own, which gets the terminal */
    struct starter *starter; /* NULL: it leads its own session */
    int outlives;            /* no SIGKILL for it when ctrun dies: it notices that itself */
    const struct rlimit *descriptors; /* how many it may have open; NULL: as many as we */
    const struct cpus *cpus;          /* that it is bound to; NULL: ours */
    int memory;                       /* then: the NUMA node whose memory it prefers; -1: none */
    int keep[4]; /* what it inherits beside 0, 1 and 2, under the same numbers; below 3: nothing */
};

/* ->pid stays 0 if no process can share ctrun's memory (some emulators), or if no more processes
 * can be made.  All signals are blocked, as for spawn(). */
void starter_begin(struct starter *starter);
void starter_end(struct starter *starter);

/* Returns when the program is running: its pid, which is also its process group.  Else -1; errno is
 * that of exec and *execed is 1, or that of fork or of the CPUs and *execed is 0.  A failed child
 * is reaped here, so that no SIGCHLD names an unknown pid.  The caller has all its signals blocked.
 */
pid_t spawn(const struct spawn_args *args, int *execed);

/* ---- The terminal, which one worker (a debugger) may have ------- */

/* Is standard input the terminal of ctrun's session, and may ctrun read it now? */
int foreground_is_ours(void);

void foreground_take(void); /* back to ctrun */

/* After a SIGCHLD: if the user stopped that worker (Ctrl-Z), ctrun stops too, so that the shell
 * has its terminal; continued, it continues the worker.  Both return whether the worker has the
 * terminal then; it has not if the shell put ctrun into the background. */
int foreground_stopped(pid_t pid, int lent);
int foreground_continued(pid_t pid);

#endif
