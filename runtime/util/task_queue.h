/* SPDX-License-Identifier: Apache-2.0 */
/* task_queue.h - a group's asynchronous calls, run in call order on a thread of the group. */
#ifndef RUNTIME_UTIL_TASK_QUEUE_H
#define RUNTIME_UTIL_TASK_QUEUE_H

#include <stdint.h>

#include "runtime/util/error.h"

struct queue;

/* A function that the queue's thread calls when a task has ended.  Embedded in an object, which
 * run() may free. */
struct sequel {
    struct sequel *next;
    void (*run)(struct sequel *sequel);
};

/* Embedded in an object of the caller, which keeps it until the task is done. */
struct task {
    struct task *next;
    ct_status (*run)(struct task *task);
    void (*abandon)(struct task *task); /* no caller waits: frees the task; NULL: a caller waits */
    struct sequel *sequels;
    int done;
    ct_status status;
    char sentence[512]; /* ct_last_error() of the thread that ran it */
};

/* Starts the thread with the first task. */
ct_status queue_push(struct queue **queue, struct task *task);
void queue_drain(struct queue *queue); /* until all pushed tasks are done; NULL is fine */
int queue_drain_by(struct queue *queue, int64_t deadline); /* 0: some are not done */
/* Gives the task's status and error sentence; CT_ERR_TIMEOUT: it is not done. */
ct_status queue_wait(struct queue *queue, struct task *task, int64_t deadline);
/* Calls the sequel when the task has ended, before queue_wait() returns; now if it has ended. */
void queue_when_done(struct queue *queue, struct task *task, struct sequel *sequel);
int queue_test(struct queue *queue, const struct task *task);
void queue_destroy(struct queue *queue); /* drains first; NULL is fine */

#endif
