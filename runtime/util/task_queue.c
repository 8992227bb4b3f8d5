/* SPDX-License-Identifier: Apache-2.0 */
/* task_queue.c - one thread that runs tasks in order.  Every task has a deadline, so queue_drain()
 * returns. */
#include "runtime/util/task_queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/util/clock.h"
#include "runtime/util/thread.h"

struct queue {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t pushed, finished;
    struct task *first, **end;
    int stop;
};

/* Runs the task's sequels.  The caller holds the lock.  Each sequel runs without the lock, so
 * another sequel may be added meanwhile. */
static void run_sequels(struct queue *q, struct task *task)
{
    while (task->sequels) {
        struct sequel *sequel = task->sequels;

        task->sequels = sequel->next;
        pthread_mutex_unlock(&q->lock);
        sequel->run(sequel);
        pthread_mutex_lock(&q->lock);
    }
}

/* Runs the task's sequels and marks the task as done.  The caller holds the lock.  The task's owner
 * may free the task when the lock is released. */
static void queue_end(struct queue *q, struct task *task)
{
    run_sequels(q, task);
    q->first = task->next;
    if (!q->first)
        q->end = &q->first;
    task->done = 1;
    if (task->abandon)
        task->abandon(task);
    pthread_cond_broadcast(&q->finished);
}

static void *queue_run(void *arg)
{
    struct queue *q = arg;

    pthread_mutex_lock(&q->lock);
    for (;;) {
        struct task *task;

        while (!q->first && !q->stop)
            pthread_cond_wait(&q->pushed, &q->lock);
        if (!(task = q->first))
            break;
        pthread_mutex_unlock(&q->lock);
        task->status = task->run(task);
        if (task->status != CT_OK)
            snprintf(task->sentence, sizeof task->sentence, "%s", ct_last_error());
        pthread_mutex_lock(&q->lock);
        queue_end(q, task);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static ct_status queue_create(struct queue **queue)
{
    struct queue *q = calloc(1, sizeof *q);
    pthread_condattr_t monotonic;
    int error;

    if (!q)
        return ct_fail(CT_ERR_NOMEM, "no memory for asynchronous calls");
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->pushed, NULL);
    pthread_cond_init(&q->finished, &monotonic);
    pthread_condattr_destroy(&monotonic);
    q->end = &q->first;
    error = thread_start(&q->thread, queue_run, q);
    if (error) {
        free(q);
        return ct_fail(CT_ERR_SYSTEM, "no thread for asynchronous calls: %s", strerror(error));
    }
    *queue = q;
    return CT_OK;
}

ct_status queue_push(struct queue **queue, struct task *task)
{
    ct_status status = *queue ? CT_OK : queue_create(queue);

    if (status != CT_OK)
        return status;
    task->next = NULL;
    pthread_mutex_lock(&(*queue)->lock);
    *(*queue)->end = task;
    (*queue)->end = &task->next;
    pthread_cond_signal(&(*queue)->pushed);
    pthread_mutex_unlock(&(*queue)->lock);
    return CT_OK;
}

void queue_drain(struct queue *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    while (q->first)
        pthread_cond_wait(&q->finished, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

int queue_drain_by(struct queue *q, int64_t deadline)
{
    const struct timespec until = { .tv_sec = deadline / 1000,
                                    .tv_nsec = deadline % 1000 * 1000000 };
    int is_empty, error = 0;

    if (!q)
        return 1;
    pthread_mutex_lock(&q->lock);
    while (q->first && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&q->finished, &q->lock, &until);
    is_empty = !q->first;
    pthread_mutex_unlock(&q->lock);
    return is_empty;
}

void queue_when_done(struct queue *q, struct task *task, struct sequel *sequel)
{
    int done;

    pthread_mutex_lock(&q->lock);
    done = task->done;
    if (!done) {
        sequel->next = task->sequels;
        task->sequels = sequel;
    }
    pthread_mutex_unlock(&q->lock);
    if (done)
        sequel->run(sequel);
}

int queue_test(struct queue *q, const struct task *task)
{
    int done;

    pthread_mutex_lock(&q->lock);
    done = task->done;
    pthread_mutex_unlock(&q->lock);
    return done;
}

ct_status queue_wait(struct queue *q, struct task *task, int64_t deadline)
{
    struct timespec until = { .tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000 };
    int error = 0;

    pthread_mutex_lock(&q->lock);
    while (!task->done && error != ETIMEDOUT)
        error = deadline == NO_DEADLINE ? pthread_cond_wait(&q->finished, &q->lock)
                                        : pthread_cond_timedwait(&q->finished, &q->lock, &until);
    error = !task->done;
    pthread_mutex_unlock(&q->lock);
    if (error)
        return ct_fail(CT_ERR_TIMEOUT, "the call is still running");
    return task->status == CT_OK ? CT_OK : ct_fail(task->status, "%s", task->sentence);
}

void queue_destroy(struct queue *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    q->stop = 1;
    pthread_cond_signal(&q->pushed);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_cond_destroy(&q->pushed);
    pthread_cond_destroy(&q->finished);
    pthread_mutex_destroy(&q->lock);
    free(q);
}
