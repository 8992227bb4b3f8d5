/* SPDX-License-Identifier: Apache-2.0 */
/* control_frame.c - sends frames that no request owns, and wakes the progress thread.  The progress
 * thread sends frames that can't be written at once. */
#include <stdlib.h>

#include "runtime/messaging/messaging_internal.h"
#include "runtime/util/thread.h"

void progress_thread_wake(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    if (m->thread_state == THREAD_NONE && thread_start(&m->thread, m->thread_main, mesh) == 0) {
        m->thread_state = THREAD_AWAKE;
    } else if (m->thread_state == THREAD_IDLE) {
        m->thread_state = THREAD_AWAKE;
        pthread_cond_signal(&m->needed);
    }
}

void send_out_alone(struct mesh *mesh, int peer, struct outgoing *out)
{
    struct messages *m = mesh->messages;

    out->background = 1;
    m->background++;
    send_out(mesh, peer, out);
    if (m->background > 0 && atomic_load(&m->waiting) == 0)
        progress_thread_wake(mesh);
}

void send_control(struct mesh *mesh, int peer, enum frame_kind kind, uint64_t id)
{
    struct outgoing *out = calloc(1, sizeof *out);

    if (!out) {
        peer_unreachable(mesh, peer, "no memory to answer it");
        return;
    }
    out->frame = (struct frame){ .magic = FRAME_MAGIC, .kind = (uint16_t)kind, .id = id };
    send_out_alone(mesh, peer, out);
}

/* Returns the eager credit that is due to the peer.  If there is no memory for the frame, the next
 * CREDIT frame includes this credit. */
void send_credit(struct mesh *mesh, int peer)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);
    struct outgoing *out;

    if (!endpoint->out || endpoint->state != ENDPOINT_OPEN || !(out = calloc(1, sizeof *out)))
        return;
    out->frame =
        (struct frame){ .magic = FRAME_MAGIC, .kind = FRAME_CREDIT, .answer = endpoint->consumed };
    endpoint->consumed = 0;
    send_out_alone(mesh, peer, out);
}
