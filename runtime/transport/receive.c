/* SPDX-License-Identifier: Apache-2.0 */
/* receive.c - what comes from the peers: new connections, and frames, which are taken apart. */
#include <sys/types.h>

#include "runtime/transport/transport.h"
#include "runtime/transport/wireup.h"
#include "runtime/util/forks.h"

#define BYTES_PER_LOOK (1u << 20) /* from one stream, so that no other starves */

static void take_frame(struct mesh *mesh, struct stream *stream);

/* All of a frame has come, and what came on the peer's other connection may have waited for it. */
static void landed(struct mesh *mesh, struct stream *stream)
{
    const int peer = stream->peer;
    struct stream *next;

    mesh->transport->handlers.on_payload(mesh, stream);
    mesh->transport->wires[peer].landed++;
    if ((next = next_in_turn(mesh, peer))) {
        take_frame(mesh, next);
        read_stream(mesh, next);
    }
}

static void take_frame(struct mesh *mesh, struct stream *stream)
{
    stream->left = 0;
    stream->into = NULL;
    if (mesh->transport->handlers.on_header(mesh, stream) < 0)
        stream_close(mesh, stream, NO_FRAME);
    else if (stream->left == 0)
        landed(mesh, stream);
}

/* 1: something moved. */
static int read_head(struct mesh *mesh, struct stream *stream)
{
    const size_t want = sizeof stream->head;
    const ssize_t n = stream->link->ops->read(
        stream->link, (char *)&stream->head + stream->head_got, want - stream->head_got);

    if (n < 0) {
        stream_close(mesh, stream, stream->link->why);
        return 0;
    }
    stream->head_got += (size_t)n;
    if (stream->head_got < want)
        return n > 0;
    stream->head_got = 0;
    if (stream->head.magic != FRAME_MAGIC) {
        stream_close(mesh, stream, NO_FRAME);
        return 0;
    }
    if (is_in_turn(mesh, stream))
        take_frame(mesh, stream);
    return 1;
}

static int read_payload(struct mesh *mesh, struct stream *stream)
{
    unsigned char nowhere[4096];
    const size_t want = stream->into                    ? stream->left
                        : stream->left < sizeof nowhere ? stream->left
                                                        : sizeof nowhere;
    const ssize_t n =
        stream->link->ops->read(stream->link, stream->into ? stream->into : nowhere, want);

    if (n < 0) {
        stream_close(mesh, stream, stream->link->why);
        return 0;
    }
    stream->left -= (size_t)n;
    if (stream->into)
        stream->into += n;
    if (stream->left == 0)
        landed(mesh, stream);
    return (int)(n > 0 ? n : 0);
}

void read_stream(struct mesh *mesh, struct stream *stream)
{
    struct link *link = stream->link;
    size_t moved = 0;
    int n = 1;

    link->dry = 0;
    while (n > 0 && !stream->closed && !stream->held
           && (moved < BYTES_PER_LOOK || link->ahead > 0)) {
        n = stream->left > 0 ? read_payload(mesh, stream) : read_head(mesh, stream);
        moved += (size_t)(n > 0 ? n : 0);
    }
    if (moved > 0)
        transport_moved(mesh->transport);
}

static void take_connection(struct mesh *mesh, const struct arrival *arrival)
{
    struct link *link = link_tcp_over(arrival->fd, arrival->accepted);

    if (link) {
        link_made(mesh, arrival->peer, link);
        return;
    }
    descriptor_close(arrival->fd); /* of one that the peer opened it sees the end */
    if (!arrival->accepted)
        link_not_made(mesh, arrival->peer, "no memory for a connection");
}

void take_arrivals(struct mesh *mesh)
{
    struct arrival arrival;
    char why[160];

    if (!mesh->wireup)
        return;
    while (wireup_take(mesh->wireup, &arrival)) {
        if (arrival.fd >= 0)
            take_connection(mesh, &arrival);
        else
            link_not_made(mesh, arrival.peer, arrival.why);
    }
    if (wireup_is_full(mesh->wireup, why, sizeof why))
        mesh->transport->handlers.on_no_connections(mesh, why);
}
