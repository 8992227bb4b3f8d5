/* SPDX-License-Identifier: Apache-2.0 */
/* link_tcp.c - a TCP connection to a peer that shares no memory with us.
 *
 * Opened by whoever first has something to say, and a second one for what is large
 * (second_link.c); the hello carries the mesh's token, which only those can know who met at the
 * same store.
 *
 * A read takes more than it was asked for, into a buffer: a small message, head and payload, and
 * those behind it cost one system call.  What is large goes straight to where it belongs.  The
 * buffer is there once the hello has come: a stranger who says nothing costs no more than its
 * socket.
 *
 * Nobody waits for a connection to be made: until it is, it takes no bytes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/hello.h"
#include "runtime/link.h"
#include "runtime/mesh.h"
#include "runtime/socket.h"

#define CONNECT_MS 10000 /* for a host that does not even refuse */
#define READ_AHEAD ((size_t)64 << 10)
/* One sendmsg() of megabytes is slow: behind its first 512 KiB the kernel takes bytes at half the
 * speed, with pauses (docs/algorithms.md).  Smaller pieces cost more calls than they gain. */
#define WHOLE_BYTES ((size_t)768 << 10)
#define PIECE_BYTES ((size_t)512 << 10)
#define PIECE_PARTS 64

struct tcp_link {
    struct link link;
    const struct peer *peer; /* whom we connect to; NULL: we are connected */
    struct hello hello;
    size_t said;           /* bytes of the hello */
    size_t unheard;        /* bytes of the hello that is still to come, when we are connected */
    unsigned char *buffer; /* of READ_AHEAD bytes, or NULL; link.ahead are left, from here: */
    size_t at;
};

static int can_reach(const struct mesh *mesh, int peer)
{
    return mesh->peers[peer].address[0] && peer != mesh->rank;
}

/* The first piece of many bytes.  Returns how many parts it has. */
static int first_piece(const struct iovec *parts, int count, struct iovec *piece)
{
    size_t left = PIECE_BYTES;
    int n = 0;

    for (; n < count && n < PIECE_PARTS && left > 0; n++) {
        piece[n] = parts[n];
        if (piece[n].iov_len > left)
            piece[n].iov_len = left;
        left -= piece[n].iov_len;
    }
    return n;
}

static size_t bytes_of(const struct iovec *parts, int count)
{
    size_t bytes = 0;

    for (int i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    return bytes;
}

/* Bytes; 0: none for now, or not connected yet; -1: errno says why. */
static ssize_t send_parts(int fd, const struct iovec *parts, int count)
{
    struct iovec piece[PIECE_PARTS];
    struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts,
                              .msg_iovlen = (size_t)count };
    ssize_t sent;

    if (bytes_of(parts, count) > WHOLE_BYTES)
        message = (struct msghdr){ .msg_iov = piece,
                                   .msg_iovlen = (size_t)first_piece(parts, count, piece) };

    do
        sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent < 0 && errno == EAGAIN ? 0 : sent;
}

static void connection_failed(struct tcp_link *tcp)
{
    snprintf(tcp->link.why, sizeof tcp->link.why, "no connection to port %d of %s: %s",
             tcp->peer->port, tcp->peer->address, strerror(errno));
}

/* 1: all was said; 0: not yet; -1: it can't be. */
static int say_hello(struct tcp_link *tcp)
{
    tcp->hello.second = tcp->link.second;
    while (tcp->said < sizeof tcp->hello) {
        const struct iovec rest = { (char *)&tcp->hello + tcp->said,
                                    sizeof tcp->hello - tcp->said };
        ssize_t sent = send_parts(tcp->link.fd, &rest, 1);

        if (sent > 0 && tcp->said == 0 && socket_meets_itself(tcp->link.fd)) {
            errno = ECONNREFUSED;
            sent = -1;
        }
        if (sent <= 0) {
            if (sent < 0)
                connection_failed(tcp);
            return (int)sent;
        }
        tcp->said += (size_t)sent;
    }
    socket_give_up_after(tcp->link.fd, 0); /* it may be busy for long */
    tcp->peer = NULL;
    tcp->link.connecting = 0;
    return 1;
}

static ssize_t write_socket(struct link *link, const struct iovec *parts, int count)
{
    struct tcp_link *tcp = (struct tcp_link *)(void *)link;
    const int said = tcp->peer ? say_hello(tcp) : 1;
    ssize_t sent;

    if (said <= 0 || count == 0)
        return said < 0 ? -1 : 0;
    sent = send_parts(link->fd, parts, count);
    if (sent < 0)
        snprintf(link->why, sizeof link->why, "its connection broke: %s", strerror(errno));
    return sent;
}

/* How much a read may take into the buffer.  Without memory for one it takes what it was asked for.
 */
static size_t room_ahead(struct tcp_link *tcp)
{
    if (tcp->unheard > 0)
        return 0;
    if (!tcp->buffer)
        tcp->buffer = malloc(READ_AHEAD);
    return tcp->buffer ? READ_AHEAD : 0;
}

/* Bytes; 0: it closed; -1: errno says why. */
static ssize_t take(struct tcp_link *tcp, void *data, size_t bytes)
{
    const size_t room = room_ahead(tcp);
    struct iovec parts[2] = { { data, bytes }, { tcp->buffer, room } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = room > 0 ? 2 : 1 };
    ssize_t got;

    do
        got = recvmsg(tcp->link.fd, &message, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return got;
    tcp->unheard -= (size_t)got < tcp->unheard ? (size_t)got : tcp->unheard;
    /* Of a large payload more may have come while this was copied. */
    tcp->link.dry = bytes < READ_AHEAD && (size_t)got < bytes + room;
    if ((size_t)got <= bytes)
        return got;
    tcp->at = 0;
    tcp->link.ahead = (size_t)got - bytes;
    return (ssize_t)bytes;
}

static ssize_t read_socket(struct link *link, void *data, size_t bytes)
{
    struct tcp_link *tcp = (struct tcp_link *)(void *)link;
    ssize_t got;

    if (link->ahead > 0) {
        const size_t n = bytes < link->ahead ? bytes : link->ahead;

        memcpy(data, tcp->buffer + tcp->at, n);
        tcp->at += n;
        link->ahead -= n;
        return (ssize_t)n;
    }
    if (link->dry)
        return 0;
    got = take(tcp, data, bytes);
    if (got > 0)
        return got;
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (tcp->peer)
        connection_failed(tcp);
    else
        snprintf(link->why, sizeof link->why, "it closed its connection%s%s", got < 0 ? ": " : "",
                 got < 0 ? strerror(errno) : "");
    return -1;
}

static void close_socket(struct link *link)
{
    close(link->fd);
    free(((struct tcp_link *)(void *)link)->buffer);
    free(link);
}

static ct_status open_socket(struct mesh *mesh, int peer, struct link **link);

const struct link_ops link_tcp = { .name = "tcp",
                                   .can_reach = can_reach,
                                   .open = open_socket,
                                   .write = write_socket,
                                   .read = read_socket,
                                   .close = close_socket };

static struct tcp_link *link_over(int fd)
{
    struct tcp_link *tcp = calloc(1, sizeof *tcp);

    if (!tcp)
        return NULL;
    tcp->link = (struct link){ .ops = &link_tcp, .fd = fd };
    socket_notice_absence(fd);
    return tcp;
}

struct link *link_tcp_accepted(int fd)
{
    struct tcp_link *tcp = link_over(fd);

    if (!tcp)
        return NULL;
    socket_nodelay(fd); /* who connects has set it */
    tcp->unheard = sizeof tcp->hello;
    tcp->link.accepted = 1;
    return &tcp->link;
}

static ct_status open_socket(struct mesh *mesh, int peer, struct link **link)
{
    const struct peer *to = &mesh->peers[peer];
    struct tcp_link *tcp;
    ct_status status;
    int fd;

    /* It listened before its address was known, so who refuses has left. */
    status = socket_connect_begin(to->address, to->port, &fd);
    if (status != CT_OK)
        return status;
    if (!(tcp = link_over(fd))) {
        close(fd);
        return ct_fail(CT_ERR_NOMEM, "no memory for a link to rank %d", peer);
    }
    socket_give_up_after(fd, CONNECT_MS);
    tcp->peer = to;
    tcp->link.connecting = 1;
    tcp->hello = (struct hello){ .magic = HELLO_MAGIC, .from = mesh->rank, .to = peer };
    memcpy(tcp->hello.token, mesh->token, sizeof tcp->hello.token);
    *link = &tcp->link;
    return CT_OK;
}
