/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/thread.h"

#include <signal.h>

int thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    pthread_attr_t how;
    sigset_t all, old;
    pthread_t started;
    int error;

    pthread_attr_init(&how);
    if (!thread)
        pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* the new thread inherits this mask */
    error = pthread_create(thread ? thread : &started, &how, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&how);
    return error;
}
