/* SPDX-License-Identifier: Apache-2.0 */
/* stream_wait.h - makes streams wait for a task of a group's thread. */
#ifndef RUNTIME_P2P_STREAM_WAIT_H
#define RUNTIME_P2P_STREAM_WAIT_H

#include "runtime/device/memory_kind.h"
#include "runtime/util/task_queue.h"

/* A stream that waits until a task has ended.  The struct is passed to queue_when_done(), or set in
 * a task that is not pushed yet.  It is freed when the task has ended. */
struct held_stream {
    struct sequel sequel;
    const struct space *space;
    void *hold;
};

/* Makes later work in the stream wait (see space->close_gate()). owner is &group->async.queue or
 * &group->async.landings, depending on the queue of the task. */
ct_status stream_hold(struct place place, void *stream, struct queue *const *owner,
                      struct held_stream **held);
/* Releases the stream at once. */
void stream_let_go(struct held_stream *held);
/* Logs, only once, that the host waits in `call` because the stream could not be held.  The reason
 * is ct_last_error(). */
void stream_log_host_waits(const char *call);

#endif
