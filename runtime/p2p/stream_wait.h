/* SPDX-License-Identifier: Apache-2.0 */
/* stream_wait.h - streams that wait for a task of a group's thread. */
#ifndef RUNTIME_P2P_STREAM_WAIT_H
#define RUNTIME_P2P_STREAM_WAIT_H

#include "runtime/device/memory_kind.h"
#include "runtime/util/task_queue.h"

/* A stream that is held until a task has ended: passed to queue_when_done(), or set in a task
 * that is not pushed yet.  It frees itself then. */
struct held_stream {
    struct sequel sequel;
    const struct space *space;
    void *hold;
};

/* Later work in the stream waits; see space->close_gate().  owner: &group->queue or
 * &group->landings, whichever has the thread that will end the task. */
ct_status stream_hold(struct place place, void *stream, struct queue *const *owner,
                      struct held_stream **held);
/* Releases the stream at once. */
void stream_let_go(struct held_stream *held);
/* The stream could not be held, so the host waits in `call`; logged once, with the reason
 * (ct_last_error()). */
void stream_log_host_waits(const char *call);

#endif
