/* SPDX-License-Identifier: Apache-2.0 */
/* task_queue.h - runs a group's asynchronous calls one at a time, in call order: on a thread of the
 * group, or on a thread that waits for one of them. */
#ifndef RUNTIME_UTIL_TASK_QUEUE_H
#define RUNTIME_UTIL_TASK_QUEUE_H

#include <stdint.h>

#include "runtime/util/error.h"

struct queue;

/* A function to call when a task has ended.  The struct is a part of a larger object, which run()
 * may free. */
struct sequel {
    struct sequel *next;
    void (*run)(struct sequel *sequel);
};

struct watch; /* a tag that queue_serve() returns when the task has ended */

/* TASK_LEFT: the queue's thread has left the task to a thread that waits. */
enum task_state { TASK_QUEUED, TASK_LEFT, TASK_RUNS, TASK_DONE };

/* A task is a part of a larger object.  The caller keeps that object until the task is done. */
struct task {
    struct task *next;
    ct_status (*run)(struct task *task);
    int suits_waiters; /* 1 if a thread that waits may run the task; 0 if only the queue's may */
    /* Frees the task when it is done.  NULL if a caller waits for the task. */
    void (*abandon)(struct task *task);
    struct sequel *sequels;
    struct watch *watches;
    enum task_state state;
    ct_status status;
    char sentence[512]; /* ct_last_error() of the thread that ran the task */
};

/* Appends the task.  Creates the queue and its thread if *queue is NULL. */
ct_status queue_push(struct queue **queue, struct task *task);
/* Waits until all pushed tasks are done, and runs those that suit waiters.  Ignores NULL. */
void queue_drain(struct queue *queue);
/* Returns 1 when all pushed tasks are done or queue is NULL, or 0 if some are not done at the
 * deadline. */
int queue_drain_by(struct queue *queue, int64_t deadline);
/* Waits for the task.  Without a deadline also runs the tasks up to this one that suit waiters.
 * Returns the task's status and records its error sentence, or returns CT_ERR_TIMEOUT if the task
 * is not done at the deadline. */
ct_status queue_wait(struct queue *queue, struct task *task, int64_t deadline);
/* Makes the task's thread call the sequel when the task has ended, before queue_wait() returns.
 * If the task is done already, calls the sequel at once on this thread. */
void queue_when_done(struct queue *queue, struct task *task, struct sequel *sequel);
/* Makes queue_serve() return the tag once, when the task has ended.  If the task is done already,
 * only sets *done to 1. */
ct_status queue_watch(struct queue *queue, struct task *task, void *tag, int *done);
/* Runs tasks that suit waiters, until a watched task has ended.  Returns the task's tag, or NULL
 * after queue_dismiss(). */
void *queue_serve(struct queue *queue);
/* Makes all calls of queue_serve() return NULL, also later ones. */
void queue_dismiss(struct queue *queue);
int queue_test(struct queue *queue, const struct task *task);
/* Waits until all pushed tasks are done, then ends the thread and frees the queue.  Ignores
 * NULL. */
void queue_destroy(struct queue *queue);

#endif
