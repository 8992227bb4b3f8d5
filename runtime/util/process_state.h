/* SPDX-License-Identifier: Apache-2.0 */
/* process_state.h - is a process stopped? */
#ifndef RUNTIME_UTIL_PROCESS_STATE_H
#define RUNTIME_UTIL_PROCESS_STATE_H

#include <sys/types.h>

/* 1: a stop signal such as SIGSTOP, a debugger, or the freezer of its control group has stopped it.
 * 0 also if there is no such process. */
int process_is_stopped(pid_t pid);
/* 1: a debugger holds it, or for a moment a tool such as LeakSanitizer. */
int process_is_traced(pid_t pid);

#endif
