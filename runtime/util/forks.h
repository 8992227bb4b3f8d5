/* SPDX-License-Identifier: Apache-2.0 */
/* forks.h - the child of a fork() gets no descriptors, groups or stores of its parent.
 *
 * A descriptor's copy in a child would keep a connection open that the parent closed, or a port in
 * use.  So the descriptors of groups and stores are noted, and the child closes them before fork()
 * returns there (pthread_atfork).  The handler takes no lock and walks no list, since other threads
 * of the parent may have been changing them.
 *
 * Groups and stores remember the process that created them; the public calls refuse them in any
 * other process. */
#ifndef RUNTIME_UTIL_FORKS_H
#define RUNTIME_UTIL_FORKS_H

#include <sys/types.h>

#include "runtime/util/error.h"

/* getpid() without the system call: set in a child before fork() returns there.  0: no group or
 * store was created yet. */
extern pid_t this_process;

/* For an object that is being created; each call compares it with this_process. */
pid_t forks_maker(void);

/* what: "group world".  CT_ERR_INVALID with a sentence. */
ct_status forks_refuse(const char *what, pid_t maker);

/* From here on no child has fd, which descriptor_close() closes.  fd < 0 is fine. */
void descriptor_own(int fd);
/* Closes fd, also one that descriptor_own() never got. */
void descriptor_close(int fd);

#endif
