/* SPDX-License-Identifier: Apache-2.0 */
/* fd_passing.c - passes open file descriptors over a unix socket (SCM_RIGHTS). */
#include "runtime/net/fd_passing.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/net/socket.h"
#include "runtime/util/clock.h"

#define FDS_PER_MESSAGE 128 /* the kernel's limit is 253 */
#define LONGEST_RETRY_MS 10000
#define LONGEST_PAUSE_MS 20

/* The byte of a message tells whether descriptors come with it. */
enum { DESCRIPTORS = 'f', NO_DESCRIPTORS = 'n' };

union fd_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * FDS_PER_MESSAGE)];
};

const char *descriptor_limit(char *text, size_t size)
{
    struct rlimit limit = { 0 };

    getrlimit(RLIMIT_NOFILE, &limit);
    snprintf(text, size, "ulimit -n is %llu", (unsigned long long)limit.rlim_cur);
    return text;
}

static ct_status too_many_in_flight(void)
{
    char limit[48];

    return ct_fail(CT_ERR_UNSUPPORTED,
                   "this user's programs are passing more descriptors to each other than the "
                   "kernel allows, %s",
                   descriptor_limit(limit, sizeof limit));
}

/* ---- Sending -------------------------------------------------------------- */

static int send_once(int socket, const int *fds, int count)
{
    union fd_control control = { 0 };
    char note = DESCRIPTORS;
    struct iovec iov = { &note, 1 };
    struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes };
    struct cmsghdr *header;

    message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
    header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
    memcpy(CMSG_DATA(header), fds, sizeof(int) * (size_t)count);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

ct_status send_fds(int socket, const int *fds, int count, int64_t deadline)
{
    const int64_t until = clock_ms() + time_left_ms(deadline, 2 * LONGEST_RETRY_MS) / 2;
    const char none = NO_DESCRIPTORS;
    int pause = 1;

    while (send_once(socket, fds, count) < 0) {
        if (errno == EINTR)
            continue;
        if (errno == EPIPE || errno == ECONNRESET)
            return ct_fail(CT_ERR_PEER, "a rank of this host left while memory was being shared");
        if (errno != ETOOMANYREFS)
            return ct_fail(CT_ERR_SYSTEM, "passing descriptors on: %s", strerror(errno));
        if (clock_ms() >= until) {
            const ct_status status = socket_write_all(socket, &none, sizeof none, deadline);

            return status == CT_OK ? too_many_in_flight() : status;
        }
        poll(NULL, 0, pause);
        pause = pause < LONGEST_PAUSE_MS ? 2 * pause : pause;
    }
    return CT_OK;
}

/* ---- Receiving ------------------------------------------------------------ */

/* Closes the descriptors of a message that the kernel cut short because this process has no room
 * for all of them. */
static void close_all(const struct cmsghdr *header)
{
    int fd;

    for (size_t at = CMSG_LEN(0); header && at + sizeof fd <= header->cmsg_len; at += sizeof fd) {
        memcpy(&fd, (const char *)header + at, sizeof fd);
        close(fd);
    }
}

ct_status recv_fds(int socket, int *fds, int count, int64_t deadline)
{
    union fd_control control;
    char note, limit[48];
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
    if (note == NO_DESCRIPTORS)
        return too_many_in_flight();
    header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_type != SCM_RIGHTS
        || header->cmsg_len != CMSG_LEN(sizeof(int) * (size_t)count)) {
        close_all(header);
        return ct_fail(CT_ERR_SYSTEM,
                       "no descriptors are left for the ranks of this host, one for each (%s)",
                       descriptor_limit(limit, sizeof limit));
    }
    memcpy(fds, CMSG_DATA(header), sizeof(int) * (size_t)count);
    return CT_OK;
}
