/* SPDX-License-Identifier: Apache-2.0 */
/* socket.c - a socket that is connected: whole blocks by a deadline, and what it is told to notice.
 *
 * Connections are made in socket_listen.c and socket_connect.c; socket_address.c says whose they
 * are. */
#include "runtime/net/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>

#include "runtime/net/socket_internal.h"
#include "runtime/util/clock.h"

#define ANSWER_MS 1000 /* for what was sent last */

int socket_wait(int fd, short events, int64_t deadline)
{
    struct pollfd ready = { .fd = fd, .events = events };

    for (;;) {
        const int polled = poll(&ready, 1, time_left_ms(deadline, 60000));

        if (polled > 0)
            return 1;
        if (polled < 0 && errno != EINTR)
            return 1; /* the read or write that follows says what it is */
        if (polled == 0 && clock_ms() >= deadline)
            return 0;
    }
}

ct_status socket_write_all(int fd, const void *data, size_t bytes, int64_t deadline)
{
    const char *at = data;

    while (bytes > 0) {
        const ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (errno == EAGAIN) {
            if (!socket_wait(fd, POLLOUT, deadline))
                return ct_fail(CT_ERR_TIMEOUT, "the other side does not read");
        } else if (errno != EINTR) {
            return ct_fail(CT_ERR_PEER, "the connection broke: %s", strerror(errno));
        }
    }
    return CT_OK;
}

ct_status socket_read_all(int fd, void *data, size_t bytes, int64_t deadline)
{
    char *at = data;

    while (bytes > 0) {
        const ssize_t n = recv(fd, at, bytes, MSG_DONTWAIT);

        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (n == 0) {
            return ct_fail(CT_ERR_PEER, "the other side closed the connection");
        } else if (errno == EAGAIN) {
            if (!socket_wait(fd, POLLIN, deadline))
                return ct_fail(CT_ERR_TIMEOUT, "the other side does not answer");
        } else if (errno != EINTR) {
            return ct_fail(CT_ERR_PEER, "the connection broke: %s", strerror(errno));
        }
    }
    return CT_OK;
}

void socket_nodelay(int fd)
{
    const int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void keep_alive(int fd, int idle, int interval, int probes)
{
    const int on = 1;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

void socket_notice_absence(int fd)
{
    keep_alive(fd, 2, 1, 4);
}

void socket_notice_lost_host(int fd)
{
    keep_alive(fd, 5, 2, (HOST_LOST_MS / 1000 - 5) / 2);
}

/* The kernel sends again, after pauses that double, or asks a peer that has no room whether it has:
 * neither was answered. */
int socket_host_is_lost(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t size = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
        return 0;
    if (info.tcpi_retransmits > 1) /* and the last time so long after the last sign of life */
        return info.tcpi_last_data_sent > ANSWER_MS
               && info.tcpi_last_ack_recv > HOST_LOST_MS + info.tcpi_last_data_sent;
    return info.tcpi_probes > 1 && info.tcpi_last_ack_recv > 2 * HOST_LOST_MS;
}

void socket_notice_silence(int fd)
{
    socket_notice_absence(fd);
    socket_give_up_after(fd, 6000);
}

void socket_give_up_after(int fd, int unanswered_ms)
{
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}
