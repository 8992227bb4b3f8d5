/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - what ct_wait() waits for: a queued collective, or a message. */
#ifndef RUNTIME_WORK_H
#define RUNTIME_WORK_H

#include "runtime/group.h"
#include "runtime/message.h"
#include "runtime/queue.h"

struct ct_work {
    ct_group *group;
    struct task *task;       /* of a collective, in `owner`; NULL: */
    struct request *request; /* of point-to-point, in `owner` */
    const char *verb;        /* "isend" */
    void *owner;             /* freed with the work by */
    void (*release)(void *owner);
};

/* Waits for a message of the group that was started, within a limit that runs since `started`
 * (clock_ms()): its record, its sentence.  *from (may be NULL): its sender, rank in the group. */
ct_status message_finish_by(ct_group *group, struct request *request, const char *verb, int *from,
                            const void *caller, const struct limit *limit, int64_t started);

#endif
