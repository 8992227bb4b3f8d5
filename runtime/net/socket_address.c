/* SPDX-License-Identifier: Apache-2.0 */
/* socket_address.c - from a name to addresses, and from a socket to its two ends.
 *
 * A connected socket is asked who is at its ends: which port, which host, which process of
 * this host; and whether they are the same. */
#include "runtime/net/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "runtime/net/socket_internal.h"

/* ---- From a name ---------------------------------------------------------- */

/* Literals, the usual case, without the resolver. */
int address_of_name(const char *host, int port, struct addrinfo **list)
{
    char bare[256], service[8];
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_NUMERICSERV | AI_NUMERICHOST };
    const size_t length = strlen(host);
    int error;

    if (host[0] == '[' && length > 2 && host[length - 1] == ']')
        snprintf(bare, sizeof bare, "%.*s", (int)length - 2, host + 1);
    else
        snprintf(bare, sizeof bare, "%s", host);
    snprintf(service, sizeof service, "%d", port);
    error = getaddrinfo(bare, service, &hints, list);
    if (error == EAI_NONAME) {
        hints.ai_flags = AI_NUMERICSERV;
        error = getaddrinfo(bare, service, &hints, list);
    }
    return error;
}

/* The abstract name space: a 0 byte, then the name. */
socklen_t address_of_unix(const char *name, struct sockaddr_un *address)
{
    const size_t length = name ? strlen(name) : 0;

    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (length == 0)
        return sizeof(sa_family_t);
    memcpy(address->sun_path + 1, name,
           length < sizeof address->sun_path - 1 ? length : sizeof address->sun_path - 1);
    return (socklen_t)(sizeof(sa_family_t) + 1 + length);
}

int unix_name_fits(const char *name)
{
    const struct sockaddr_un *address;

    return strlen(name) <= sizeof address->sun_path - 1;
}

/* ---- From a socket -------------------------------------------------------- */

static int port_of(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;

    if (address->ss_family == AF_INET6)
        return ntohs(v6->sin6_port);
    return address->ss_family == AF_INET ? ntohs(v4->sin_port) : -1;
}

int socket_port(int fd)
{
    struct sockaddr_storage address = { 0 };
    socklen_t length = sizeof address;

    return getsockname(fd, (struct sockaddr *)&address, &length) < 0 ? -1 : port_of(&address);
}

static int peer_port(int fd)
{
    struct sockaddr_storage address = { 0 };
    socklen_t length = sizeof address;

    return getpeername(fd, (struct sockaddr *)&address, &length) < 0 ? -1 : port_of(&address);
}

int socket_is_loopback(int fd)
{
    char host[64];

    return socket_local_address(fd, host, sizeof host) == CT_OK
           && (!strncmp(host, "127.", 4) || !strcmp(host, "::1"));
}

int socket_stays_here(int fd)
{
    struct sockaddr_storage ours = { 0 }, theirs = { 0 };
    socklen_t our_size = sizeof ours, their_size = sizeof theirs;
    const struct sockaddr_in *v4[2] = { (const void *)&ours, (const void *)&theirs };
    const struct sockaddr_in6 *v6[2] = { (const void *)&ours, (const void *)&theirs };

    if (getsockname(fd, (struct sockaddr *)&ours, &our_size) < 0
        || getpeername(fd, (struct sockaddr *)&theirs, &their_size) < 0
        || ours.ss_family != theirs.ss_family)
        return 0;
    if (ours.ss_family == AF_INET)
        return v4[0]->sin_addr.s_addr == v4[1]->sin_addr.s_addr;
    return ours.ss_family == AF_INET6
           && !memcmp(&v6[0]->sin6_addr, &v6[1]->sin6_addr, sizeof v6[0]->sin6_addr);
}

/* A port of the range for clients that nobody listens on may be given to the very
 * socket that connects to it: TCP then connects it to itself. */
int socket_meets_itself(int fd)
{
    return socket_stays_here(fd) && socket_port(fd) == peer_port(fd);
}

ct_status socket_local_address(int fd, char *host, size_t size)
{
    struct sockaddr_storage address = { 0 };
    socklen_t length = sizeof address;
    const struct sockaddr_in *v4 = (const void *)&address;
    const struct sockaddr_in6 *v6 = (const void *)&address;

    host[0] = 0;
    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return ct_fail(CT_ERR_SYSTEM, "getsockname: %s", strerror(errno));
    if (address.ss_family == AF_INET)
        inet_ntop(AF_INET, &v4->sin_addr, host, (socklen_t)size);
    else if (address.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], host, (socklen_t)size);
    else if (address.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &v6->sin6_addr, host, (socklen_t)size);
    return host[0] ? CT_OK : ct_fail(CT_ERR_SYSTEM, "not a TCP socket");
}

ct_status socket_unix_name(int fd, char *name, size_t size)
{
    struct sockaddr_un address = { 0 };
    socklen_t length = sizeof address;

    if (getsockname(fd, (struct sockaddr *)&address, &length) < 0
        || length <= sizeof(sa_family_t) + 1)
        return ct_fail(CT_ERR_SYSTEM, "a unix socket without a name: %s", strerror(errno));
    snprintf(name, size, "%.*s", (int)(length - sizeof(sa_family_t) - 1), address.sun_path + 1);
    return CT_OK;
}

ct_status socket_peer(int fd, pid_t *pid, uid_t *uid)
{
    struct ucred who;
    socklen_t length = sizeof who;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0)
        return ct_fail(CT_ERR_SYSTEM, "who is at the other end of a unix socket: %s",
                       strerror(errno));
    if (pid)
        *pid = who.pid;
    if (uid)
        *uid = who.uid;
    return CT_OK;
}
