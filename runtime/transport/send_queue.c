/* SPDX-License-Identifier: Apache-2.0 */
/* send_queue.c - what is written to a peer: one queue for each, over a link that is opened when the
 * first message goes, or two (connection_pair.c).  Until there is one the queue waits.  As much of
 * it leaves in one write as the link takes. */
#include <stdlib.h>
#include <string.h>

#include "runtime/transport/transport.h"

#define PARTS_AT_ONCE 64  /* two of each message; it costs stack, and the kernel looks at each */
#define MUCH (256u << 10) /* of one write */

ct_status peer_connect(struct mesh *mesh, int peer)
{
    struct link *link;
    ct_status status = CT_ERR_UNSUPPORTED;

    for (int i = 0; link_kinds[i]; i++) {
        if (mesh->only_link && strcmp(mesh->only_link, link_kinds[i]->name))
            continue;
        if (!link_kinds[i]->can_reach(mesh, peer))
            continue;
        status = link_kinds[i]->open(mesh, peer, &link);
        if (status != CT_OK)
            return status;
        mesh->transport->wires[peer].opening = 1;
        mesh->transport->wires[peer].own_tried = 1;
        if (link)
            link_made(mesh, peer, link);
        return CT_OK;
    }
    return ct_fail(status, "there is no link to it");
}

/* Whoever sleeps shall wake when this link takes more; NULL: none is waited for. */
static void watch_room(struct mesh *mesh, struct wire *wire, struct link *full)
{
    struct link *const before = wire->full;

    if (full && full->fd < 0)
        full = NULL;
    if (full == before)
        return;
    wire->full = full;
    for (struct stream *stream = mesh->transport->streams; stream; stream = stream->next)
        if (stream->link == full || stream->link == before)
            stream_watch(mesh, stream, 0);
}

/* What is still to be written of the queue and goes there, as many parts as there is room for. */
static int parts_of(const struct wire *wire, const struct link *link, struct iovec *parts)
{
    uint32_t turn = wire->said;
    int count = 0;

    for (struct outgoing *out = wire->first;
         out && count < PARTS_AT_ONCE - 1 && link_for(wire, out) == link; out = out->next) {
        const size_t head = sizeof out->frame;
        const size_t in_head = out->written < head ? out->written : head;
        const size_t in_payload = out->written - in_head;

        out->frame.turn = turn++;
        if (in_head < head)
            parts[count++] = (struct iovec){ (char *)&out->frame + in_head, head - in_head };
        if (in_payload < out->bytes)
            parts[count++] = (struct iovec){ (void *)((uintptr_t)out->payload + in_payload),
                                             out->bytes - in_payload };
    }
    return count;
}

/* The link took so many bytes of the queue. */
static void advance(struct mesh *mesh, struct wire *wire, size_t bytes)
{
    while (bytes > 0) {
        struct outgoing *out = wire->first;
        const size_t left = sizeof out->frame + out->bytes - out->written;

        if (bytes < left) {
            out->written += bytes;
            return;
        }
        bytes -= left;
        out->written += left;
        wire->first = out->next;
        wire->said++;
        mesh->transport->handlers.on_sent(mesh, out);
    }
}

/* All that the link takes.  But over a socket, while a large message comes, one large write, and
 * the rest at the next look: two ranks that both write all that their sockets take before they read
 * any are slower, since the bytes wait in the kernel until no cache has them.  The socket has room
 * then, so whoever sleeps until it has is awake at once. */
void flush_to(struct mesh *mesh, int peer)
{
    struct wire *wire = &mesh->transport->wires[peer];
    struct iovec parts[PARTS_AT_ONCE];
    ssize_t taken = 1;

    while (wire->first && wire->out && !wire->unreachable && taken > 0) {
        wire->begun_on = link_for(wire, wire->first);
        taken = wire->begun_on->ops->write(wire->begun_on, parts,
                                           parts_of(wire, wire->begun_on, parts));
        if (taken > 0) {
            transport_moved(mesh->transport);
            advance(mesh, wire, (size_t)taken);
            if (taken > MUCH && wire->first && wire->begun_on->fd >= 0
                && mesh->transport->handlers.expects_much(mesh))
                break;
        }
    }
    if (taken < 0)
        peer_unreachable(mesh, peer, wire->begun_on->why);
    else if (wire->out)
        watch_room(mesh, wire, wire->first ? link_for(wire, wire->first) : NULL);
}

void flush_gathered(struct mesh *mesh, int peer)
{
    struct wire *wire = &mesh->transport->wires[peer];

    if (!wire->gathered)
        return;
    wire->gathered = 0;
    flush_to(mesh, peer);
}

void send_out(struct mesh *mesh, int peer, struct outgoing *out)
{
    struct wire *wire = &mesh->transport->wires[peer];

    out->next = NULL;
    if (wire->first)
        wire->last->next = out;
    else
        wire->first = out;
    wire->last = out;
    second_lane_wanted(mesh, peer, out);
    if (!wire->unreachable && !wire->out && !wire->opening && peer_connect(mesh, peer) != CT_OK)
        peer_unreachable(mesh, peer, ct_last_error());
    else if (wire->unreachable)
        peer_unreachable(mesh, peer, wire->why);
    else if (mesh->transport->gathering)
        wire->gathered = 1;
    else
        flush_to(mesh, peer);
}

int ensure_connection(struct mesh *mesh, int peer)
{
    const struct wire *wire = &mesh->transport->wires[peer];

    if (wire->unreachable || wire->gone)
        return 0;
    return wire->out || wire->opening || peer_connect(mesh, peer) == CT_OK;
}

void connect_for_liveness(struct mesh *mesh, int peer)
{
    const struct wire *wire = &mesh->transport->wires[peer];

    if (!wire->out && !wire->opening && !wire->unreachable && !wire->gone
        && peer_connect(mesh, peer) != CT_OK)
        link_not_made(mesh, peer, ct_last_error());
}
