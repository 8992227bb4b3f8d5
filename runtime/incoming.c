/* SPDX-License-Identifier: Apache-2.0 */
/* incoming.c - what is read from the peers: who connects is greeted, frames are taken apart. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/log.h"
#include "runtime/messages.h"

#define BYTES_PER_LOOK (1u << 20) /* from one stream, so that no other starves */

/* A connection said who it is.  A wrong token is somebody else's, not an error of the job's. */
static void greet(struct mesh *mesh, struct stream *stream)
{
    const struct hello *hello = &stream->head.hello;
    struct wire *wire;

    if (hello->magic != HELLO_MAGIC || hello->to != mesh->rank || hello->from < 0
        || hello->from >= mesh->size || hello->from == mesh->rank
        || memcmp(hello->token, mesh->token, sizeof mesh->token)) {
        log_line(LOG_WARN, "a stranger connected to port of rank %d and was sent away", mesh->rank);
        stream_close(mesh, stream, "a stranger");
        return;
    }
    mesh->messages->strangers--;
    stream->peer = hello->from;
    stream->head_got = 0;
    wire = &mesh->messages->wires[stream->peer];
    wire->streams++;
    wire->gone = 0;
    if (wire->ended_ms > 0)
        mesh->messages->ended--;
    wire->ended_ms = 0;
    wire->heard = 1;
    stream->link->second = hello->second;
    second_link_accepted(mesh, stream);
}

/* A receiver keeps as much of an eager message as an eager one can have: with a larger one its
 * receive would succeed and have nothing. */
static int is_message(const struct frame *frame)
{
    return frame->magic == FRAME_MAGIC
           && (frame->bytes <= EAGER_OVER_SOCKETS
               || (frame->kind != FRAME_EAGER && frame->kind != FRAME_BREAK));
}

static void take_frame(struct mesh *mesh, struct stream *stream);

/* All of a frame has come, and what came on the peer's other connection may have waited for it. */
static void landed(struct mesh *mesh, struct stream *stream)
{
    const int peer = stream->peer;
    struct stream *next;

    message_landed(mesh, stream);
    mesh->messages->wires[peer].landed++;
    if ((next = next_in_turn(mesh, peer))) {
        take_frame(mesh, next);
        read_stream(mesh, next);
    }
}

static void take_frame(struct mesh *mesh, struct stream *stream)
{
    mesh->messages->wires[stream->peer].heard = 1;
    stream->left = 0;
    message_arrived(mesh, stream);
    if (stream->left == 0)
        landed(mesh, stream);
}

/* 1: something moved. */
static int read_head(struct mesh *mesh, struct stream *stream)
{
    const size_t want = stream->peer < 0 ? sizeof stream->head.hello : sizeof stream->head.frame;
    const ssize_t n = stream->link->ops->read(
        stream->link, (char *)&stream->head + stream->head_got, want - stream->head_got);

    if (n < 0) {
        stream_close(mesh, stream, stream->link->why);
        return 0;
    }
    stream->head_got += (size_t)n;
    if (stream->head_got < want)
        return n > 0;
    if (stream->peer < 0) {
        greet(mesh, stream);
        return !stream->closed;
    }
    stream->head_got = 0;
    if (!is_message(&stream->head.frame)) {
        stream_close(mesh, stream, "it sent bytes that are no message");
        return 0;
    }
    if (its_turn(mesh, stream))
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
    if (stream->unexpected)
        stream->unexpected->got += (size_t)n;
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
        messages_moved(mesh->messages);
}

/* Who connects and says nothing may not keep the others out.  The newest stand first. */
static void close_oldest_stranger(struct mesh *mesh)
{
    struct stream *oldest = NULL;

    for (struct stream *stream = mesh->messages->streams; stream; stream = stream->next)
        if (stream->peer < 0 && !stream->closed)
            oldest = stream;
    if (oldest)
        stream_close(mesh, oldest, "it said nothing");
}

static int accept_peer(struct mesh *mesh)
{
    struct link *link;
    const int fd = accept4(mesh->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return 0;
    if (mesh->messages->strangers >= STRANGERS)
        close_oldest_stranger(mesh);
    if (!(link = link_tcp_accepted(fd))) {
        close(fd);
        return 1;
    }
    if (!stream_open(mesh, link, -1))
        link->ops->close(link);
    else
        mesh->messages->strangers++;
    return 1;
}

void accept_peers(struct mesh *mesh)
{
    for (int i = 0; i < STRANGERS && accept_peer(mesh); i++)
        ;
}
