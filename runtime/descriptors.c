/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c - passing open files over a unix socket (SCM_RIGHTS). */
#include "runtime/descriptors.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/clock.h"

#define FDS_PER_MESSAGE 128 /* the kernel's limit is 253 */

ct_status send_fds(int socket, const int *fds, int count)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * FDS_PER_MESSAGE)];
    } control = { 0 };
    char note = 'f';
    struct iovec iov = { &note, 1 };
    struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes };
    struct cmsghdr *header;
    ssize_t sent;

    message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
    header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
    memcpy(CMSG_DATA(header), fds, sizeof(int) * (size_t)count);
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == 1 ? CT_OK
                     : ct_fail(CT_ERR_SYSTEM, "passing descriptors on: %s", strerror(errno));
}

ct_status recv_fds(int socket, int *fds, int count, int64_t deadline)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * FDS_PER_MESSAGE)];
    } control;
    char note;
    struct iovec iov = { &note, 1 };
    struct msghdr message = { .msg_iov = &iov,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    struct pollfd ready = { .fd = socket, .events = POLLIN };
    struct cmsghdr *header;
    int polled;

    do
        polled = poll(&ready, 1, time_left_ms(deadline, 60000));
    while ((polled < 0 && errno == EINTR) || (polled == 0 && clock_ms() < deadline));
    if (polled == 0)
        return ct_fail(CT_ERR_TIMEOUT, "a rank of this host did not pass its descriptors in time");
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
        return ct_fail(CT_ERR_PEER, "a rank of this host left while memory was being shared");
    header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_type != SCM_RIGHTS
        || header->cmsg_len != CMSG_LEN(sizeof(int) * (size_t)count))
        return ct_fail(CT_ERR_SYSTEM, "a rank of this host passed no descriptors "
                                      "(is the limit of open files too low?)");
    memcpy(fds, CMSG_DATA(header), sizeof(int) * (size_t)count);
    return CT_OK;
}

ct_status send_all_fds(int socket, const int *fds, int count)
{
    ct_status status = CT_OK;

    for (int at = 0; at < count && status == CT_OK; at += FDS_PER_MESSAGE)
        status =
            send_fds(socket, fds + at, count - at < FDS_PER_MESSAGE ? count - at : FDS_PER_MESSAGE);
    return status;
}

ct_status recv_all_fds(int socket, int *fds, int count, int64_t deadline)
{
    ct_status status = CT_OK;

    for (int at = 0; at < count && status == CT_OK; at += FDS_PER_MESSAGE)
        status = recv_fds(socket, fds + at,
                          count - at < FDS_PER_MESSAGE ? count - at : FDS_PER_MESSAGE, deadline);
    return status;
}
