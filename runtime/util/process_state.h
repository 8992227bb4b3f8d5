/* SPDX-License-Identifier: Apache-2.0 */
/* process_state.h - does a process stand still because somebody stopped it? */
#ifndef RUNTIME_UTIL_PROCESS_STATE_H
#define RUNTIME_UTIL_PROCESS_STATE_H

#include <sys/types.h>

char process_state(pid_t pid); /* the letter that ps shows; 0: there is no such process */

/* By SIGSTOP or another stop signal, by a debugger, or by the freezer of its control group.  0 also
 * if there is no such process. */
int process_is_stopped(pid_t pid);
/* By a debugger, or for a moment by a tool such as LeakSanitizer. */
int process_is_traced(pid_t pid);

#endif
