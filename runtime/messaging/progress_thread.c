/* SPDX-License-Identifier: Apache-2.0 */
/* progress_thread.c - the thread that moves ct_isend() and ct_irecv() while no other thread waits.
 *
 * The thread starts with the first request that is not done at once.  A thread that waits for a
 * request moves all requests, so the progress thread works only while no other thread waits.  It
 * starts to work after a millisecond in which no thread has begun to wait.
 *
 * Waking the thread costs a program more than a short message.  So as long as threads begin waits,
 * the progress thread wakes by itself once in a millisecond and looks at the links.  Only after a
 * millisecond without a new wait, and with nothing to do, it sleeps until a request wakes it. */
#include <errno.h>
#include <time.h>

#include "runtime/messaging/device_rendezvous.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/util/clock.h"

static int needed(const struct messages *m)
{
    return m->background > 0 && atomic_load(&m->waiting) == 0;
}

static void wait_a_millisecond(struct mesh *mesh)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&mesh->messages->needed, &mesh->transport->lock, &until);
}

static void progress_thread_move(struct mesh *mesh)
{
    struct messages *m = mesh->messages;
    struct wait wait;
    int naps = 0;

    wait_begin(&wait, &mesh->waiter, NO_DEADLINE);
    wait_sleeps_at_once(&wait);
    while (!m->stop && needed(m)) {
        progress(mesh);
        take_goodbyes(mesh);
        pthread_mutex_unlock(&mesh->transport->lock);
        if (device_copies_move(mesh))
            device_copies_nap(naps++);
        else
            wait_turn(&wait);
        pthread_mutex_lock(&mesh->transport->lock);
    }
    wait_end(&wait);
}

static void progress_thread_idle(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    m->thread_state = THREAD_IDLE;
    while (!m->stop && m->thread_state == THREAD_IDLE)
        pthread_cond_wait(&m->needed, &mesh->transport->lock);
}

void *progress_thread_main(void *arg)
{
    struct mesh *mesh = arg;
    struct messages *m = mesh->messages;

    pthread_mutex_lock(&mesh->transport->lock);
    while (!m->stop) {
        const unsigned waits = atomic_load_explicit(&m->waits, memory_order_relaxed);

        wait_a_millisecond(mesh);
        if (waits != atomic_load_explicit(&m->waits, memory_order_relaxed))
            progress(mesh); /* a short wait may have looked at its peer's link only */
        else if (needed(m))
            progress_thread_move(mesh);
        else
            progress_thread_idle(mesh);
    }
    pthread_mutex_unlock(&mesh->transport->lock);
    return NULL;
}

void progress_thread_stop(struct mesh *mesh)
{
    struct messages *m = mesh->messages;
    int runs;

    pthread_mutex_lock(&mesh->transport->lock);
    runs = m->thread_state != THREAD_NONE;
    m->stop = 1;
    pthread_cond_signal(&m->needed);
    pthread_mutex_unlock(&mesh->transport->lock);
    if (!runs)
        return;
    bell_ring(mesh->waiter.bell, mesh->waiter.wake_fd);
    pthread_join(m->thread, NULL);
    m->thread_state = THREAD_NONE;
}
