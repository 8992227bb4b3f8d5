/* SPDX-License-Identifier: Apache-2.0 */
/* link_tcp.c - a link over a TCP connection to a peer that shares no memory with this rank.
 *
 * wireup.c makes the connections: the first for the rank that sends first, the second for large
 * frames (endpoint.c).
 *
 * A read takes more bytes than the caller asked for, and keeps them in a buffer.  So the header and
 * payload of a small message, and the messages behind it, cost one system call.  A large payload is
 * read directly to its destination.
 *
 * An encrypted connection has separate read and write functions, so that a plain connection does
 * not test for encryption.  After a read of an encrypted connection, unread bytes are either
 * counted in link.ahead or still in the socket, where epoll reports them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/net/secure_channel.h"
#include "runtime/transport/link.h"
#include "runtime/transport/mesh.h"
#include "runtime/transport/wireup.h"
#include "runtime/util/forks.h"

#define READ_AHEAD ((size_t)64 << 10)
/* One sendmsg() of several megabytes is slow.  After the first 512 KiB the kernel takes bytes at
 * half the speed, with pauses (docs/algorithms.md).  So more than WHOLE_BYTES are sent in pieces of
 * PIECE_BYTES.  With smaller pieces, the system calls would cost more time than is gained. */
#define WHOLE_BYTES ((size_t)768 << 10)
#define PIECE_BYTES ((size_t)512 << 10)
#define PIECE_PARTS 64

struct tcp_link {
    struct link link;
    unsigned char *buffer; /* READ_AHEAD bytes, or NULL if none was allocated */
    size_t at;             /* index of the first unread byte; link.ahead bytes are unread */
    struct secure_channel *channel; /* NULL if the connection is not encrypted */
};

static int link_tcp_can_reach(const struct mesh *mesh, int peer)
{
    return mesh->peers[peer].port > 0 && peer != mesh->rank;
}

/* Sets `piece` to the first PIECE_BYTES of the parts, or fewer if these have more than PIECE_PARTS
 * parts.  Returns the number of parts of the piece. */
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

static size_t link_tcp_bytes_of(const struct iovec *parts, int count)
{
    size_t bytes = 0;

    for (int i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    return bytes;
}

/* Returns the number of bytes sent, 0 if the socket is full, or -1 with the reason in errno. */
static ssize_t send_parts(int fd, const struct iovec *parts, int count)
{
    struct iovec piece[PIECE_PARTS];
    struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts,
                              .msg_iovlen = (size_t)count };
    ssize_t sent;

    if (link_tcp_bytes_of(parts, count) > WHOLE_BYTES)
        message = (struct msghdr){ .msg_iov = piece,
                                   .msg_iovlen = (size_t)first_piece(parts, count, piece) };

    do
        sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent < 0 && errno == EAGAIN ? 0 : sent;
}

static ssize_t write_socket(struct link *link, const struct iovec *parts, int count)
{
    const ssize_t sent = send_parts(link->fd, parts, count);

    if (sent < 0)
        snprintf(link->why, sizeof link->why, "its connection broke: %s", strerror(errno));
    return sent;
}

/* ---- Plain -------------------------------------------------------------------- */

/* Returns the size of the buffer, which is allocated at the first call.  Returns 0 if there is no
 * memory for a buffer; then a read takes only the bytes that the caller asked for. */
static size_t room_ahead(struct tcp_link *tcp)
{
    if (!tcp->buffer)
        tcp->buffer = malloc(READ_AHEAD);
    return tcp->buffer ? READ_AHEAD : 0;
}

/* Reads from the socket, up to `bytes` to `data` and the rest to the buffer.  Returns the number of
 * bytes in `data`, 0 if the peer closed the connection, or -1 with the reason in errno. */
static ssize_t link_tcp_take(struct tcp_link *tcp, void *data, size_t bytes)
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
    /* After a long copy the socket may not be empty, since more of a large payload may have come
     * meanwhile. */
    tcp->link.dry = bytes < READ_AHEAD && (size_t)got < bytes + room;
    if ((size_t)got <= bytes)
        return got;
    tcp->at = 0;
    tcp->link.ahead = (size_t)got - bytes;
    return (ssize_t)bytes;
}

static size_t take_ahead(struct tcp_link *tcp, void *data, size_t bytes)
{
    const size_t n = bytes < tcp->link.ahead ? bytes : tcp->link.ahead;

    memcpy(data, tcp->buffer + tcp->at, n);
    tcp->at += n;
    tcp->link.ahead -= n;
    return n;
}

/* Sets link->why after recvmsg() returned `got`, which is 0 or -1.  Returns -1. */
static ssize_t link_tcp_say_end(struct link *link, ssize_t got)
{
    if (got < 0 && errno == ETIMEDOUT)
        snprintf(link->why, sizeof link->why, LINK_HOST_IS_LOST);
    else
        snprintf(link->why, sizeof link->why, "it closed its connection%s%s", got < 0 ? ": " : "",
                 got < 0 ? strerror(errno) : "");
    return -1;
}

static ssize_t read_socket(struct link *link, void *data, size_t bytes)
{
    struct tcp_link *tcp = (struct tcp_link *)(void *)link;
    ssize_t got;

    if (link->ahead > 0)
        return (ssize_t)take_ahead(tcp, data, bytes);
    if (link->dry)
        return 0;
    got = link_tcp_take(tcp, data, bytes);
    if (got > 0)
        return got;
    if (got < 0 && errno == EAGAIN)
        return 0;
    return link_tcp_say_end(link, got);
}

/* ---- Encrypted ---------------------------------------------------------------- */

static ssize_t write_channel(struct link *link, const struct iovec *parts, int count)
{
    struct tcp_link *tcp = (struct tcp_link *)(void *)link;
    const ssize_t sent = secure_channel_write(tcp->channel, parts, count);

    if (sent < 0 && errno == EAGAIN)
        return 0;
    if (sent < 0)
        snprintf(link->why, sizeof link->why, "its connection broke: %s", strerror(errno));
    return sent;
}

/* Moves the decrypted bytes that the caller has not asked for from the channel to the buffer.  An
 * end or an error is not lost; the next read of the channel reports it again. */
static void fill_ahead(struct tcp_link *tcp)
{
    ssize_t got;

    if (!secure_channel_has_more(tcp->channel))
        return;
    got = secure_channel_read_rest(tcp->channel, tcp->buffer, READ_AHEAD);
    tcp->at = 0;
    tcp->link.ahead = got > 0 ? (size_t)got : 0;
}

static ssize_t read_channel(struct link *link, void *data, size_t bytes)
{
    struct tcp_link *tcp = (struct tcp_link *)(void *)link;
    ssize_t got;

    if (link->ahead > 0) {
        got = (ssize_t)take_ahead(tcp, data, bytes);
    } else {
        got = link->dry ? 0 : secure_channel_read(tcp->channel, data, bytes);
        if (link->dry || (got < 0 && errno == EAGAIN))
            return 0;
        if (got <= 0)
            return link_tcp_say_end(link, got);
    }
    if (link->ahead == 0)
        fill_ahead(tcp);
    link->dry = bytes < READ_AHEAD && secure_channel_is_dry(tcp->channel);
    return got;
}

/* ---- Both ---------------------------------------------------------------------- */

static void close_socket(struct link *link)
{
    struct tcp_link *tcp = (struct tcp_link *)(void *)link;

    secure_channel_destroy(tcp->channel);
    descriptor_close(link->fd);
    free(tcp->buffer);
    free(link);
}

static ct_status open_socket(struct mesh *mesh, int peer, struct link **link);

const struct link_ops link_tcp = { .name = "tcp",
                                   .can_reach = link_tcp_can_reach,
                                   .open = open_socket,
                                   .write = write_socket,
                                   .read = read_socket,
                                   .close = close_socket };

/* Not in link_kinds[], since CT_ENCRYPT decides whether a TCP link encrypts. */
static const struct link_ops link_tls = { .name = "tcp",
                                          .encrypts = 1,
                                          .can_reach = link_tcp_can_reach,
                                          .open = open_socket,
                                          .write = write_channel,
                                          .read = read_channel,
                                          .close = close_socket };

struct link *link_tcp_over(int fd, struct secure_channel *channel, int accepted)
{
    struct tcp_link *tcp = calloc(1, sizeof *tcp);

    if (!tcp)
        return NULL;
    tcp->link = (struct link){ .ops = &link_tcp, .fd = fd, .accepted = accepted };
    if (!channel)
        return &tcp->link;
    if (room_ahead(tcp) == 0) {
        free(tcp);
        return NULL;
    }
    tcp->link.ops = &link_tls;
    tcp->channel = channel;
    secure_channel_read_ahead(channel);
    return &tcp->link;
}

static ct_status open_socket(struct mesh *mesh, int peer, struct link **link)
{
    const struct peer *to = &mesh->peers[peer];

    *link = NULL;
    return wireup_connect(mesh->wireup, peer, mesh->hosts[to->node].address, to->port);
}
