/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - a queued collective or a message for which ct_wait() waits. */
#ifndef RUNTIME_P2P_WORK_H
#define RUNTIME_P2P_WORK_H

#include "runtime/group/group.h"
#include "runtime/messaging/messages.h"
#include "runtime/util/task_queue.h"

/* A message that ends on a thread of the group (stream_wait.c). */
struct landing {
    struct task task; /* first: the task that ends the message */
    const struct ct_work *work;
    const struct space *space; /* the stream's */
    const void *caller;
    struct limit limit; /* as set at ct_wait_on_stream(); runs from the start of the task */
    int from;           /* rank in the group */
};

struct ct_work {
    struct group_work kept; /* first: work_keep() */
    ct_group *group;
    struct queue *queue;     /* the queue of `task` */
    struct task *task;       /* a collective's in `owner`, or in `landing`; NULL: none */
    struct request *request; /* a message's, in `owner` */
    struct landing *landing; /* ends `request`; owned by the work; NULL: ct_wait() ends it */
    int holds_none;          /* no stream may wait for the work, so the host waits */
    void *owner;             /* release() frees it with the work */
    void (*release)(void *owner);
};

/* Keeps a work that the program gets and must wait for.  If the program does not, the work ends
 * with its group. */
void work_keep(ct_work *work);

/* "irecv of 1000 f32 from rank 1 (tag 0) on group world, rank 0" */
void message_describe(const ct_group *group, const struct request *request, const char *verb,
                      char *text, size_t size);
/* Waits for a started message of the group, within a limit that runs since `started` (clock_ms()).
 * Records the call and sets the error sentence.  *from (may be NULL): the sender, rank in the
 * group. */
ct_status message_finish_by(ct_group *group, struct request *request, const char *verb, int *from,
                            const void *caller, const struct limit *limit, int64_t started);

#endif
