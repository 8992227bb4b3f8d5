/* SPDX-License-Identifier: Apache-2.0 */
/* process_state.h - the state of a process, and whether it has ended. */
#ifndef RUNTIME_UTIL_PROCESS_STATE_H
#define RUNTIME_UTIL_PROCESS_STATE_H

#include <sys/types.h>

#define PROCESS_FIELD 24

/* Copies a field of /proc/<pid>/stat to text and returns text.  `field` is the number in proc(5),
 * from 3 on.  The text is "" if the field can't be read. */
const char *process_stat(pid_t pid, int field, char text[PROCESS_FIELD]);

/* Returns the state letter of the process, such as 'S' (sleeping), 'D' (uninterruptible sleep), 'T'
 * (stopped by a signal) or 't' (stopped by a debugger or a tool such as LeakSanitizer).  Returns 0
 * if no process has this pid. */
char process_state(pid_t pid);

/* Opens a pidfd, which becomes readable when the process has ended.  Returns -1 with errno set on
 * failure; Linux has pidfds since 5.3.  ESRCH means that no process has this pid. */
int process_open(pid_t pid);

/* Returns 1 if the process has ended, also if it is a zombie.  pid is of our pid namespace. */
int process_has_ended(pid_t pid);

/* Returns 'T' if a signal has stopped the process, 't' if a debugger has, 'F' if the freezer of its
 * control group has, or 0 if the process is not stopped. */
char process_is_stopped(pid_t pid);

#endif
