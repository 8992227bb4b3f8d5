/* SPDX-License-Identifier: Apache-2.0 */
/* task_queue.c - runs tasks in order.  Every task has a deadline, so queue_drain() returns.
 *
 * A thread keeps the queue: it looks for tasks whenever it is woken.  That is a thread in
 * queue_serve() if there is one, else the queue's own thread.  A thread that waits for a task runs
 * the tasks that the keeper has not begun. */
#include "runtime/util/task_queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/util/clock.h"
#include "runtime/util/thread.h"

struct watch {
    struct watch *next;
    void *tag;
};

enum keeper { OWN_THREAD, SERVER };
enum keeper_state { KEEPER_AWAKE, KEEPER_NAPS, KEEPER_SLEEPS };

struct queue {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t called[2]; /* by keeper */
    pthread_cond_t idle;      /* for threads in queue_serve() that do not keep the queue */
    pthread_cond_t finished;
    enum keeper keeper;
    enum keeper_state state;
    int helped;  /* 1 if a thread that waits has run a task since the keeper last looked */
    long nap_ns; /* length of the keeper's last nap; 0 if it slept */
    struct task *first, **end;
    struct watch *ended; /* of tasks that have ended */
    int dismissed, stop;
};

/* How long the keeper leaves tasks to threads that wait, if they have run the last ones.  Each nap
 * is twice as long as the one before. */
#define FIRST_NAP_NS 200000
#define LONGEST_NAP_NS 3200000

/* Wakes a thread for the first task: the keeper if it sleeps, or the own thread if no other thread
 * suits, or if the queue ends.  A keeper that naps will look by itself. */
static void call_thread(struct queue *q)
{
    if (q->stop || (q->keeper == SERVER && q->first && !q->first->suits_waiters)) {
        pthread_cond_signal(&q->called[OWN_THREAD]);
    } else if (q->first && q->state == KEEPER_SLEEPS) {
        q->state = KEEPER_AWAKE;
        pthread_cond_signal(&q->called[q->keeper]);
    }
}

static void let_server_return(struct queue *q)
{
    pthread_cond_signal(q->keeper == SERVER ? &q->called[SERVER] : &q->idle);
}

/* Hands the tags of an ended task to queue_serve(). */
static void end_watches(struct queue *q, struct task *task)
{
    struct watch **end = &q->ended;

    if (!task->watches)
        return;
    while (*end)
        end = &(*end)->next;
    *end = task->watches;
    task->watches = NULL;
    let_server_return(q);
}

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
    task->state = TASK_DONE;
    end_watches(q, task);
    if (task->abandon)
        task->abandon(task);
    pthread_cond_broadcast(&q->finished);
}

/* Runs the first task.  The caller holds the lock, which is released meanwhile. */
static void run_first(struct queue *q)
{
    struct task *task = q->first;

    task->state = TASK_RUNS;
    pthread_mutex_unlock(&q->lock);
    task->status = task->run(task);
    if (task->status != CT_OK)
        snprintf(task->sentence, sizeof task->sentence, "%s", ct_last_error());
    pthread_mutex_lock(&q->lock);
    queue_end(q, task);
    call_thread(q);
}

static int can_run_first(const struct queue *q)
{
    return q->first && q->first->state < TASK_RUNS;
}

/* Runs the first task on a thread that waits.  Returns 0 if the task does not suit such a thread,
 * or if it runs already.  The caller holds the lock. */
static int help(struct queue *q)
{
    if (!can_run_first(q) || !q->first->suits_waiters)
        return 0;
    q->helped = 1;
    run_first(q);
    return 1;
}

/* Returns 1 if this keeper should run the first task.  If threads that wait are quicker, leaves
 * them the task for one nap. */
static int keeper_takes_first(struct queue *q, enum keeper me)
{
    if (!can_run_first(q) || (!q->first->suits_waiters && me == SERVER)
        || (q->first->suits_waiters && me != q->keeper))
        return 0;
    if (!q->helped || !q->first->suits_waiters || q->first->state == TASK_LEFT)
        return 1;
    q->first->state = TASK_LEFT;
    return 0;
}

/* Lets the keeper wait for tasks.  To wake a thread takes longer than a small collective, and the
 * thread then competes with the program for a processor.  So a keeper that woke in vain, since
 * another thread had run its task, naps: no push wakes it as long as this continues. */
static void keeper_rest(struct queue *q, enum keeper me)
{
    const int leaves = q->first && q->first->state == TASK_LEFT;
    struct timespec until;

    q->state = q->helped ? KEEPER_NAPS : KEEPER_SLEEPS;
    q->helped = 0;
    if (q->state == KEEPER_NAPS) {
        if (q->nap_ns < LONGEST_NAP_NS && !leaves)
            q->nap_ns = q->nap_ns ? 2 * q->nap_ns : FIRST_NAP_NS;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += leaves ? FIRST_NAP_NS : q->nap_ns;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&q->called[me], &q->lock, &until);
    } else {
        q->nap_ns = 0;
        pthread_cond_wait(&q->called[me], &q->lock);
    }
    if (q->keeper == me)
        q->state = KEEPER_AWAKE;
}

static void *queue_run(void *arg)
{
    struct queue *q = arg;

    pthread_mutex_lock(&q->lock);
    while (!q->stop || q->first)
        if (keeper_takes_first(q, OWN_THREAD))
            run_first(q);
        else if (q->keeper == OWN_THREAD)
            keeper_rest(q, OWN_THREAD);
        else
            pthread_cond_wait(&q->called[OWN_THREAD], &q->lock);
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* Keeps the queue until a server can return. */
static void keep(struct queue *q)
{
    q->keeper = SERVER;
    q->state = KEEPER_AWAKE;
    while (!q->ended && !q->dismissed)
        if (keeper_takes_first(q, SERVER))
            run_first(q);
        else
            keeper_rest(q, SERVER);
    q->keeper = OWN_THREAD;
    q->state = KEEPER_SLEEPS; /* or it looks when its task ends */
    if (can_run_first(q))
        call_thread(q);
}

void *queue_serve(struct queue *q)
{
    struct watch *watch;
    void *tag = NULL;

    pthread_mutex_lock(&q->lock);
    while (!q->ended && !q->dismissed)
        if (q->keeper == SERVER)
            pthread_cond_wait(&q->idle, &q->lock);
        else
            keep(q);
    watch = q->ended;
    if (watch) {
        tag = watch->tag;
        q->ended = watch->next;
        if (q->ended)
            let_server_return(q);
    }
    pthread_mutex_unlock(&q->lock);
    free(watch);
    return tag;
}

void queue_dismiss(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->dismissed = 1;
    pthread_cond_broadcast(&q->idle);
    pthread_cond_signal(&q->called[SERVER]);
    pthread_mutex_unlock(&q->lock);
}

ct_status queue_watch(struct queue *q, struct task *task, void *tag, int *done)
{
    struct watch *watch = malloc(sizeof *watch);

    if (!watch)
        return ct_fail(CT_ERR_NOMEM, "no memory to watch a call");
    pthread_mutex_lock(&q->lock);
    *done = task->state == TASK_DONE;
    if (!*done) {
        *watch = (struct watch){ task->watches, tag };
        task->watches = watch;
    }
    pthread_mutex_unlock(&q->lock);
    if (*done)
        free(watch);
    return CT_OK;
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
    for (int i = 0; i < 2; i++)
        pthread_cond_init(&q->called[i], &monotonic);
    pthread_cond_init(&q->idle, NULL);
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
    struct queue *q;

    if (status != CT_OK)
        return status;
    q = *queue;
    task->next = NULL;
    pthread_mutex_lock(&q->lock);
    *q->end = task;
    q->end = &task->next;
    if (can_run_first(q))
        call_thread(q);
    pthread_mutex_unlock(&q->lock);
    return CT_OK;
}

void queue_drain(struct queue *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    while (q->first)
        if (!help(q))
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
    done = task->state == TASK_DONE;
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
    done = task->state == TASK_DONE;
    pthread_mutex_unlock(&q->lock);
    return done;
}

ct_status queue_wait(struct queue *q, struct task *task, int64_t deadline)
{
    struct timespec until = { .tv_sec = deadline / 1000, .tv_nsec = deadline % 1000 * 1000000 };
    int error = 0;

    pthread_mutex_lock(&q->lock);
    while (task->state != TASK_DONE && error != ETIMEDOUT)
        if (deadline != NO_DEADLINE)
            error = pthread_cond_timedwait(&q->finished, &q->lock, &until);
        else if (!help(q))
            pthread_cond_wait(&q->finished, &q->lock);
    error = task->state != TASK_DONE;
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
    call_thread(q);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    for (int i = 0; i < 2; i++)
        pthread_cond_destroy(&q->called[i]);
    pthread_cond_destroy(&q->idle);
    pthread_cond_destroy(&q->finished);
    pthread_mutex_destroy(&q->lock);
    while (q->ended) {
        struct watch *watch = q->ended;

        q->ended = watch->next;
        free(watch);
    }
    free(q);
}
