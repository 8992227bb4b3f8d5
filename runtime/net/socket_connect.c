/* SPDX-License-Identifier: Apache-2.0 */
/* socket_connect.c - reaching who listens, by a deadline.
 *
 * A try goes through the addresses of a name until one of them takes us.  Who may only be starting
 * is tried again, after pauses that grow; what waiting does not mend ends it at once. */
#include "runtime/net/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/net/socket_internal.h"
#include "runtime/util/clock.h"

#define FIRST_PAUSE_MS 10
#define LONGEST_PAUSE_MS 500
#define NAME_PATIENCE_MS 10000 /* a name server may be starting; a wrong name stays wrong */
#define NO_WAIT (-1)           /* a deadline: what is on its way will do */

/* ---- One address ---------------------------------------------------------- */

/* A socket that is connected or on its way, or -1 with errno. */
static int connect_begin(const struct sockaddr *address, socklen_t length)
{
    const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;

    if (fd < 0)
        return -1;
    if (connect(fd, address, length) < 0)
        error = errno == EINPROGRESS ? 0 : errno;
    if (!error && address->sa_family != AF_UNIX)
        socket_nodelay(fd);
    if (error) {
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* 0, or why not. */
static int connect_end(int fd, int family, int64_t deadline)
{
    struct pollfd ready = { .fd = fd, .events = POLLOUT };
    socklen_t size = sizeof(int);
    int error = ETIMEDOUT, polled;

    do
        polled = poll(&ready, 1, time_left_ms(deadline, 60000));
    while ((polled < 0 && errno == EINTR) || (polled == 0 && clock_ms() < deadline));
    if (polled > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    return !error && family != AF_UNIX && socket_meets_itself(fd) ? ECONNREFUSED : error;
}

/* 0, or -1 with errno; never longer than the deadline. */
static int connect_one(const struct sockaddr *address, socklen_t length, int64_t deadline,
                       int *connected)
{
    const int fd = connect_begin(address, length);
    const int error = fd < 0 ? errno : connect_end(fd, address->sa_family, deadline);

    if (error) {
        if (fd >= 0)
            close(fd);
        errno = error;
        return -1;
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    *connected = fd;
    return 0;
}

/* ---- All addresses of a name ---------------------------------------------- */

/* Why a try failed: an error of getaddrinfo(), or 0 and what the last address gave. */
struct refusal {
    int name, address;
    int no_loopback; /* all addresses were this host's loopback, which is down */
};

static int is_loopback(const struct sockaddr *address)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;

    return address->sa_family == AF_INET ? ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                                         : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static const char *refusal_words(struct refusal why)
{
    return why.name ? gai_strerror(why.name) : strerror(why.address);
}

/* One try for each.  1: *fd is connected, or on its way if the deadline is NO_WAIT. */
static int try_each(const char *host, int port, int64_t deadline, int *fd, struct refusal *why)
{
    struct addrinfo *list = NULL;
    int failed = 1;

    *why = (struct refusal){ .name = address_of_name(host, port, &list), .no_loopback = 1 };
    if (why->name)
        return 0;
    for (const struct addrinfo *a = list; a && failed; a = a->ai_next) {
        failed = deadline == NO_WAIT ? (*fd = connect_begin(a->ai_addr, a->ai_addrlen)) < 0
                                     : connect_one(a->ai_addr, a->ai_addrlen, deadline, fd) < 0;
        why->address = failed ? errno : 0;
        why->no_loopback &= why->address == ENETUNREACH && is_loopback(a->ai_addr);
    }
    freeaddrinfo(list);
    return !failed;
}

static ct_status connect_first(const char *host, int port, int64_t deadline, int *fd)
{
    struct refusal why;

    if (try_each(host, port, deadline, fd, &why))
        return CT_OK;
    errno = why.name ? EINVAL : why.address; /* for callers that try again */
    return why.name
               ? ct_fail(CT_ERR_PEER, "the name %s does not resolve: %s", host, refusal_words(why))
               : ct_fail(CT_ERR_PEER, "no connection to port %d of %s: %s", port, host,
                         refusal_words(why));
}

ct_status socket_connect_once(const char *host, int port, int64_t deadline, int *fd)
{
    return connect_first(host, port, deadline, fd);
}

ct_status socket_connect_begin(const char *host, int port, int *fd)
{
    return connect_first(host, port, NO_WAIT, fd);
}

/* ---- Until the deadline --------------------------------------------------- */

static void sleep_ms(int ms)
{
    const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    nanosleep(&time, NULL);
}

static int longer(int pause)
{
    return 2 * pause < LONGEST_PAUSE_MS ? 2 * pause : LONGEST_PAUSE_MS;
}

/* What waiting does not mend, for it is this process that has no more. */
static int is_out_of_descriptors(int error)
{
    return error == EMFILE || error == ENFILE;
}

ct_status socket_connect(const char *host, int port, int64_t deadline, int *fd)
{
    const int64_t start = clock_ms();
    struct refusal why;

    for (int pause = FIRST_PAUSE_MS; !try_each(host, port, deadline, fd, &why);
         pause = longer(pause)) {
        if (!why.name && is_out_of_descriptors(why.address))
            return ct_fail(CT_ERR_SYSTEM, "no connection to port %d of %s: %s", port, host,
                           refusal_words(why));
        if (!why.name && why.no_loopback)
            return ct_fail(CT_ERR_SYSTEM,
                           "no connection to port %d of %s: the loopback interface is down "
                           "(ip link set lo up)",
                           port, host);
        if (why.name && (why.name != EAI_AGAIN || clock_ms() - start > NAME_PATIENCE_MS))
            return ct_fail(CT_ERR_SYSTEM, "the name %s does not resolve: %s", host,
                           refusal_words(why));
        if (clock_ms() + pause >= deadline)
            return ct_fail(CT_ERR_TIMEOUT, "no connection to port %d of %s in %lld ms: %s", port,
                           host, (long long)(clock_ms() - start), refusal_words(why));
        sleep_ms(pause);
    }
    return CT_OK;
}

ct_status socket_connect_unix(const char *name, int64_t deadline, int *fd)
{
    struct sockaddr_un address;
    const socklen_t length = address_of_unix(name, &address);
    int pause = FIRST_PAUSE_MS;

    if (!unix_name_fits(name))
        return ct_fail(CT_ERR_INVALID, "the socket name \"%s\" is too long", name);
    while (connect_one((struct sockaddr *)&address, length, deadline, fd) < 0) {
        if (is_out_of_descriptors(errno))
            return ct_fail(CT_ERR_SYSTEM, "no connection to unix socket @%s: %s", name,
                           strerror(errno));
        if (clock_ms() + pause >= deadline)
            return ct_fail(CT_ERR_TIMEOUT, "no connection to unix socket @%s: %s", name,
                           strerror(errno));
        sleep_ms(pause);
        pause = longer(pause);
    }
    return CT_OK;
}
