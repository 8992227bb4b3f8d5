/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - a work: an asynchronous collective or message that the program ends with ct_wait(). */
#ifndef RUNTIME_P2P_WORK_H
#define RUNTIME_P2P_WORK_H

#include "runtime/group/group.h"
#include "runtime/messaging/messages.h"
#include "runtime/util/task_queue.h"

/* A message that a thread of the group ends (stream_wait.c). */
struct landing {
    struct task task; /* first field; the task that ends the message */
    const struct ct_work *work;
    const struct space *space; /* of the stream that waits */
    const void *caller;
    struct limit limit; /* set by ct_wait_on_stream(); runs from the start of the task */
    int from;           /* the sender's rank in the group */
};

struct ct_work {
    struct group_work kept; /* first field, since free_kept() casts it to ct_work */
    ct_group *group;
    struct queue *queue; /* the queue of `task` */
    /* in `owner` for a collective, or in `landing`; NULL if the work has no task */
    struct task *task;
    struct request *request; /* the request of a message, in `owner` */
    /* ends `request`, and is owned by the work; NULL if ct_wait() ends `request` */
    struct landing *landing;
    int holds_none; /* 1 if no stream may wait for the work, so the host waits */
    void *owner;    /* memory that release() frees when the work is freed */
    void (*release)(void *owner);
};

/* Records a work that the program must end with ct_wait().  If the program does not, the work is
 * freed with its group. */
void work_keep(ct_work *work);

/* Writes a description such as "irecv of 1000 f32 from rank 1 (tag 0) on group world, rank 0". */
void message_describe(const ct_group *group, const struct request *request, const char *verb,
                      char *text, size_t size);
/* Waits for a started message of the group.  The limit runs from `started` (clock_ms()).  Records
 * the call and sets the error message.  Sets *from to the sender's rank in the group; from may be
 * NULL. */
ct_status message_finish_by(ct_group *group, struct request *request, const char *verb, int *from,
                            const void *caller, const struct limit *limit, int64_t started);

#endif
