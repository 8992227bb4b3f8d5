/* SPDX-License-Identifier: Apache-2.0 */
/* forks.h - what the child of a fork() has of its parent's: nothing.
 *
 * A copy of a descriptor that lives on in a child keeps a connection open whose owner closed it or
 * died, and a port in use.  So a descriptor that this process owns for as long as a group or a
 * store lives is noted, and the child closes it before fork() returns there (pthread_atfork).  No
 * lock is taken for that, and none of the parent's memory is walked, whatever its other threads
 * were doing.
 *
 * Groups and stores remember the process that made them; the public calls refuse those of another
 * one. */
#ifndef RUNTIME_UTIL_FORKS_H
#define RUNTIME_UTIL_FORKS_H

#include <sys/types.h>

#include "runtime/util/error.h"

/* getpid(), without the system call: changed in a child before fork() returns there.  0: nothing
 * was made yet. */
extern pid_t this_process;

/* Of what is being made; to be compared with this_process at each call. */
pid_t forks_maker(void);

/* what: "group world".  CT_ERR_INVALID with a sentence. */
ct_status forks_refuse(const char *what, pid_t maker);

/* From here on no child has fd, which descriptor_close() closes.  fd < 0 is fine. */
void descriptor_own(int fd);
/* close(); fd may be one that was not noted. */
void descriptor_close(int fd);

#endif
