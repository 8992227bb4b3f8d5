/* SPDX-License-Identifier: Apache-2.0 */
/* socket_listen.c - waiting for those who connect: on a port, on all interfaces, under a name.
 *
 * Who has a port that is in use is looked for and said (port_owner.c); errno stays what it was,
 * for callers that try another. */
#include "runtime/net/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "runtime/net/socket_internal.h"

#define BACKLOG 4096

static ct_status listen_failed(const char *host, int port, int error)
{
    char owner[96] = "";

    if (error == EADDRINUSE) {
        socket_port_owner(port, owner, sizeof owner);
        ct_fail(CT_ERR_SYSTEM, "port %d on %s is in use%s%s; stop it or choose another port", port,
                host ? host : "this host", *owner ? " by " : "", owner);
    } else {
        ct_fail(CT_ERR_SYSTEM, "can't listen on port %d of %s: %s", port,
                host ? host : "all interfaces", strerror(error));
    }
    errno = error;
    return CT_ERR_SYSTEM;
}

static int listen_on(const struct sockaddr *address, socklen_t length)
{
    const int on = 1, off = 0;
    const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, address, length) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static ct_status listen_everywhere(int port, int *fd)
{
    const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
    const struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

    *fd = listen_on((const struct sockaddr *)&v6, sizeof v6);
    if (*fd < 0 && errno != EADDRINUSE)
        *fd = listen_on((const struct sockaddr *)&v4, sizeof v4);
    return *fd >= 0 ? CT_OK : listen_failed(NULL, port, errno);
}

ct_status socket_listen(const char *host, int port, int *fd)
{
    struct addrinfo *list;
    int error;

    if (!host)
        return listen_everywhere(port, fd);
    error = address_of_name(host, port, &list);
    if (error)
        return ct_fail(CT_ERR_SYSTEM, "the name %s does not resolve: %s", host,
                       gai_strerror(error));
    *fd = -1;
    error = 0;
    for (const struct addrinfo *a = list; a && *fd < 0; a = a->ai_next) {
        *fd = listen_on(a->ai_addr, a->ai_addrlen);
        if (*fd < 0 && error != EADDRINUSE)
            error = errno;
    }
    freeaddrinfo(list);
    return *fd >= 0 ? CT_OK : listen_failed(host, port, error);
}

ct_status socket_listen_unix(const char *name, int *fd)
{
    struct sockaddr_un address;
    const socklen_t length = address_of_unix(name, &address);

    if (name && !unix_name_fits(name))
        return ct_fail(CT_ERR_INVALID, "the socket name \"%s\" is too long", name);
    *fd = listen_on((struct sockaddr *)&address, length);
    return *fd >= 0 ? CT_OK
                    : ct_fail(CT_ERR_SYSTEM, "can't listen on unix socket @%s: %s",
                              name ? name : "", strerror(errno));
}

ct_status socket_accept(int listener, int64_t deadline, int *fd)
{
    while (deadline == 0 || socket_wait(listener, POLLIN, deadline)) {
        *fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (*fd >= 0) {
            socket_nodelay(*fd);
            return CT_OK;
        }
        if (errno == EAGAIN && deadline == 0)
            return CT_ERR_TIMEOUT;
        if (errno != EINTR && errno != EAGAIN && errno != ECONNABORTED) {
            const int error = errno;

            ct_fail(CT_ERR_SYSTEM, "accept: %s", strerror(error));
            errno = error;
            return CT_ERR_SYSTEM;
        }
    }
    return ct_fail(CT_ERR_TIMEOUT, "nobody connected in time");
}
