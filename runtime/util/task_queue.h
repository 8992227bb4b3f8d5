/* SPDX-License-Identifier: Apache-2.0 */
/* task_queue.h - a group's asynchronous calls, run in call order on a thread of the group's. */
#ifndef RUNTIME_UTIL_TASK_QUEUE_H
#define RUNTIME_UTIL_TASK_QUEUE_H

#include <stdint.h>

#include "runtime/util/error.h"

struct queue;

/* What is done when a task has ended, on the queue's thread: embedded in what that is for, which
 * may free it there. */
struct sequel {
    struct sequel *next;
    void (*run)(struct sequel *sequel);
};

/* Embedded in what is to be run; its owner's memory, until done. */
struct task {
    struct task *next;
    ct_status (*run)(struct task *task);
    void (*abandon)(struct task *task); /* nobody waits for it: frees it; NULL: somebody does */
    struct sequel *sequels;
    int done;
    ct_status status;
    char sentence[512]; /* ct_last_error() of the thread that ran it */
};

/* The thread is started with the first task. */
ct_status queue_push(struct queue **queue, struct task *task);
void queue_drain(struct queue *queue); /* until all pushed tasks are done; NULL is fine */
/* The task's status and sentence; CT_ERR_TIMEOUT: not done by then. */
ct_status queue_wait(struct queue *queue, struct task *task, int64_t deadline);
/* Once the task has ended, or now if it has; before queue_wait() says so. */
void queue_when_done(struct queue *queue, struct task *task, struct sequel *sequel);
int queue_test(struct queue *queue, const struct task *task);
void queue_destroy(struct queue *queue); /* drains first; NULL is fine */

#endif
