/* SPDX-License-Identifier: Apache-2.0 */
/* forks.h - the child of a fork() gets no descriptors, groups or stores of its parent.
 *
 * A copy of a descriptor in a child would keep a connection open that the parent closed, or keep a
 * port in use.  So groups and stores register their descriptors, and the child closes them before
 * fork() returns in the child (pthread_atfork).  The handler walks no list, since another thread of
 * the parent may have been changing the list at the time of the fork.
 *
 * Groups and stores remember the process that created them.  The public calls refuse a group or
 * store in any other process. */
#ifndef RUNTIME_UTIL_FORKS_H
#define RUNTIME_UTIL_FORKS_H

#include <sys/types.h>

#include "runtime/util/error.h"

/* The pid of this process, which can be read without the system call of getpid().  The child's
 * value is set before fork() returns in the child.  0 until the first group or store is created. */
extern pid_t this_process;

/* Returns this process's pid, for an object that is being created to keep.  Each call on the object
 * compares the kept pid with this_process.  The first forks_maker() installs the handler for
 * fork(). */
pid_t forks_maker(void);

/* Returns CT_ERR_INVALID and records that process `maker` created `what` ("group world") before
 * fork(). */
ct_status forks_refuse(const char *what, pid_t maker);

/* Closes all descriptors from `first` on, or has the kernel close them at the next exec.  Is
 * async-signal-safe and allocates nothing. */
void descriptors_end(int first, int at_exec);

/* No other thread of this process forks between these two calls, unless they are 200 ms apart.  A
 * thread that opens a descriptor calls them before it does so and after descriptor_own(), or a
 * child could get a copy that is not registered. */
void forks_hold(void);
void forks_release(void);
/* Like accept4() with SOCK_CLOEXEC and SOCK_NONBLOCK, and registers the new descriptor.  The
 * listener must not block. */
int descriptor_accept(int listener);
/* Makes every later child of fork() close fd.  The caller must close fd with descriptor_close().
 * Ignores a negative fd. */
void descriptor_own(int fd);
/* Closes fd, even if descriptor_own() was not called for it. */
void descriptor_close(int fd);

#endif
