/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - starts threads of libct.  These threads block all signals, since a handler of the
 * program must run on a thread of the program. */
#ifndef RUNTIME_UTIL_THREAD_H
#define RUNTIME_UTIL_THREAD_H

#include <pthread.h>

/* Starts a thread, which the caller joins with *thread.  If thread is NULL, the new thread is
 * detached.  Returns 0 or an error number. */
int thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
