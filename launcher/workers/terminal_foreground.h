/* SPDX-License-Identifier: Apache-2.0 */
/* terminal_foreground.h - the terminal, lent to one worker (a debugger) for its life. */
#ifndef LAUNCHER_WORKERS_TERMINAL_FOREGROUND_H
#define LAUNCHER_WORKERS_TERMINAL_FOREGROUND_H

#include <sys/types.h>

/* Is standard input our terminal, and are we the ones who may read it now? */
int foreground_is_ours(void);

/* To a process group of our session.  Async-signal-safe: the child calls it, before its exec. */
int foreground_give(pid_t group);
void foreground_take(void);

/* After a SIGCHLD: if the user stopped that worker (Ctrl-Z), ctrun stops too, so that the shell
 * has its terminal; continued, it continues the worker.  Both return whether the worker has the
 * terminal then; it has not if the shell put ctrun into the background. */
int foreground_stopped(pid_t pid, int lent);
int foreground_continued(pid_t pid);

#endif
