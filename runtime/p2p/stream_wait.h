/* SPDX-License-Identifier: Apache-2.0 */
/* stream_wait.h - streams that wait for what a group's thread does. */
#ifndef RUNTIME_P2P_STREAM_WAIT_H
#define RUNTIME_P2P_STREAM_WAIT_H

#include "runtime/device/memory_kind.h"
#include "runtime/util/task_queue.h"

/* A stream that is held until a task has ended: queue_when_done(), or the one first in a task that
 * is not pushed yet.  It frees itself then. */
struct held_stream {
    struct sequel sequel;
    const struct space *space;
    void *hold;
};

/* What comes later in the stream waits; as space->close_gate(). */
ct_status stream_hold(struct place place, void *stream, struct held_stream **held);
/* At once. */
void stream_let_go(struct held_stream *held);
/* It could not be, so `who` lets the host wait; said once, with the reason (ct_last_error()). */
void stream_say_host_waits(const char *who);

#endif
