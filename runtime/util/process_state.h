/* SPDX-License-Identifier: Apache-2.0 */
/* process_state.h - what the kernel knows of a process. */
#ifndef RUNTIME_UTIL_PROCESS_STATE_H
#define RUNTIME_UTIL_PROCESS_STATE_H

#include <sys/types.h>

#define PROCESS_FIELD 24

/* A field of /proc/<pid>/stat by its number in proc(5), from 3 on, as text; "" if it can't be read.
 * Returns text. */
const char *process_stat(pid_t pid, int field, char text[PROCESS_FIELD]);

/* 'S' sleeping, 'D' in the kernel, 'T' stopped by a signal, 't' by a debugger or a tool such as
 * LeakSanitizer; 0: no process has this pid. */
char process_state(pid_t pid);

/* What has stopped it: 'T' and 't' as above, 'F' the freezer of its control group; 0: nothing. */
char process_is_stopped(pid_t pid);

#endif
