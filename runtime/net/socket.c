/* SPDX-License-Identifier: Apache-2.0 */
/* socket.c - TCP and unix sockets: names and addresses, listening, connecting, reading and writing
 * by a deadline, and noticing that the other host is gone.
 *
 * A try to connect goes through the addresses of a name until one of them accepts.  If the peer
 * may only be starting, or the name does not resolve yet, the try is repeated after growing
 * pauses.  Other errors, which waiting would not change, end it at once.  When a port is in
 * use, the error names the process that has it (port_owner.c), and errno is kept for callers
 * that try another port. */
#include "runtime/net/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define BACKLOG 4096
#define FIRST_PAUSE_MS 10
#define LONGEST_PAUSE_MS 500
#define LISTEN_TRIES 20
#define NAME_PATIENCE_MS \
    300000             /* a pod gets its name only when it is scheduled; a wrong name stays wrong */
#define NO_WAIT (-1)   /* a deadline: return once the connection is begun */
#define ANSWER_MS 1000 /* time that the peer has to answer the bytes sent last */

/* ---- Names ------------------------------------------------------------------ */

/* Resolves a name.  Literal addresses, the usual case, do not call the resolver.  Returns 0, and
 * the caller then calls freeaddrinfo(); or returns an error of getaddrinfo(). */
static int address_of_name(const char *host, int port, struct addrinfo **list)
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

/* Makes an address in the abstract name space: a 0 byte and the name.  If name is NULL or "", the
 * kernel chooses a name.  Returns the length of the address. */
static socklen_t address_of_unix(const char *name, struct sockaddr_un *address)
{
    const size_t length = name ? strlen(name) : 0;

    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (length == 0)
        return sizeof(sa_family_t);
    memcpy(address->sun_path + 1, name,
           length < sizeof address->sun_path - 1 ? length : sizeof address->sun_path - 1);
    return (socklen_t)(sizeof(sa_family_t) + 1 + length);
}

static int unix_name_fits(const char *name)
{
    const struct sockaddr_un *address;

    return strlen(name) <= sizeof address->sun_path - 1;
}

/* ---- The two ends of a connection ------------------------------------------- */

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

/* If no process listens on a port, the kernel may give this very port to the client that connects
 * to it.  TCP then connects the socket to itself. */
int socket_is_self_connected(int fd)
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

/* ---- Reading and writing ---------------------------------------------------- */

/* Returns 1 if the socket is ready, 0 if the deadline passed. */
static int socket_wait(int fd, short events, int64_t deadline)
{
    struct pollfd ready = { .fd = fd, .events = events };

    for (;;) {
        const int polled = poll(&ready, 1, time_left_ms(deadline, 60000));

        if (polled > 0)
            return 1;
        if (polled < 0 && errno != EINTR)
            return 1; /* the read or write that follows returns the error */
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

/* ---- Options ---------------------------------------------------------------- */

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

/* Breaks an idle connection about 6 s after the other host vanished.  Bytes that we have sent are
 * not limited, since a peer may leave them unread for any time. */
static void notice_absence(int fd)
{
    keep_alive(fd, 2, 1, 4);
}

void socket_notice_lost_host(int fd)
{
    keep_alive(fd, 5, 2, (HOST_LOST_MS / 1000 - 5) / 2);
}

/* Returns 1 if the other host answers neither retransmissions, which the kernel sends after pauses
 * that double, nor the probes to a peer that has no room for our bytes. */
int socket_host_is_lost(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t size = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
        return 0;
    /* The last bytes were sent more than ANSWER_MS ago, and for HOST_LOST_MS before that
     * no packet came. */
    if (info.tcpi_retransmits > 1)
        return info.tcpi_last_data_sent > ANSWER_MS
               && info.tcpi_last_ack_recv > HOST_LOST_MS + info.tcpi_last_data_sent;
    return info.tcpi_probes > 1 && info.tcpi_last_ack_recv > 2 * HOST_LOST_MS;
}

void socket_notice_silence(int fd)
{
    notice_absence(fd);
    socket_give_up_after(fd, 6000);
}

void socket_give_up_after(int fd, int unanswered_ms)
{
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
}

int socket_error_is_silence(int error)
{
    return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN
           || error == ENETDOWN;
}

/* ---- Listening -------------------------------------------------------------- */

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

static void socket_sleep_ms(int ms)
{
    const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    nanosleep(&time, NULL);
}

/* Returns the listening socket, or -1 with errno set.  Sets *bound if bind() succeeded. */
static int listen_once(const struct sockaddr *address, socklen_t length, int *bound)
{
    const int on = 1, off = 0;
    const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error;

    *bound = 0;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    *bound = bind(fd, address, length) == 0;
    if (*bound && listen(fd, BACKLOG) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* If two processes call listen() for one port at the same time, the kernel may refuse both, since
 * each counts as listening while the other is checked.  Then bind() succeeds again, and this
 * function repeats both calls after a pause that differs from process to process. */
static int listen_on(const struct sockaddr *address, socklen_t length)
{
    int bound, fd = listen_once(address, length, &bound);

    for (int tries = 1; fd < 0 && bound && errno == EADDRINUSE && tries < LISTEN_TRIES; tries++) {
        socket_sleep_ms(1 + getpid() % (2 * tries));
        fd = listen_once(address, length, &bound);
    }
    return fd;
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
    if (error) {
        ct_fail(CT_ERR_SYSTEM, "the name %s does not resolve: %s", host, gai_strerror(error));
        errno = ENOENT;
        return CT_ERR_SYSTEM;
    }
    *fd = -1;
    /* A port in use ends the loop.  If this socket listened at the name's next address, clients
     * would not connect to it, since they try the addresses in the same order. */
    for (const struct addrinfo *a = list; a && *fd < 0 && error != EADDRINUSE; a = a->ai_next) {
        *fd = listen_on(a->ai_addr, a->ai_addrlen);
        error = *fd < 0 ? errno : 0;
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

/* ---- Connecting to one address -------------------------------------------- */

/* Returns a socket that is connected or connecting, or -1 with errno. */
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

/* Waits until the connection is made.  Returns 0 or an errno. */
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
    return !error && family != AF_UNIX && socket_is_self_connected(fd) ? ECONNREFUSED : error;
}

/* Returns 0, or -1 with errno. */
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

/* ---- Connecting to all addresses of a name ------------------------------ */

/* Why a try failed: `name` is an error of getaddrinfo(), or 0; then `address` is the errno of
 * the last address. */
struct refusal {
    int name, address;
    int no_loopback; /* true if all addresses were this host's loopback, which is down */
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

/* Tries each address of the name once.  Returns 1 if *fd is connected, or connecting if the
 * deadline is NO_WAIT; else returns 0 and sets *why. */
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

/* ---- Connecting until the deadline -------------------------------------- */

static int longer(int pause)
{
    return 2 * pause < LONGEST_PAUSE_MS ? 2 * pause : LONGEST_PAUSE_MS;
}

static int is_out_of_descriptors(int error)
{
    return error == EMFILE || error == ENFILE;
}

static void say_what_is_awaited(const char *host, int port, const struct refusal *why)
{
    if (why->name)
        log_line(LOG_WAITS,
                 "waiting %d s for the name %s to resolve: %s; does this host know it (DNS, "
                 "/etc/hosts)? An address needs no name",
                 LONG_WAIT_MS / 1000, host, refusal_words(*why));
    else
        log_line(LOG_WAITS,
                 "waiting %d s for a connection to port %d of %s: %s; does the process run there "
                 "that serves the store (rank 0's), and does a firewall let connections through?",
                 LONG_WAIT_MS / 1000, port, host, refusal_words(*why));
}

/* Returns the deadline of one try.  An address that drops packets blocks the try until then, so the
 * first tries end when the message about the long wait is due. */
static int64_t end_of_try(const struct long_wait *wait, int64_t deadline)
{
    const int64_t word = wait->since + LONG_WAIT_MS;

    return wait->said || deadline < word ? deadline : word;
}

ct_status socket_connect(const char *host, int port, int64_t deadline, int *fd)
{
    struct long_wait wait = long_wait_begin();
    struct refusal why;

    for (int pause = FIRST_PAUSE_MS; !try_each(host, port, end_of_try(&wait, deadline), fd, &why);
         pause = longer(pause)) {
        const int64_t waited = clock_ms() - wait.since;

        if (!why.name && is_out_of_descriptors(why.address))
            return ct_fail(CT_ERR_SYSTEM, "no connection to port %d of %s: %s", port, host,
                           refusal_words(why));
        if (!why.name && why.no_loopback)
            return ct_fail(CT_ERR_SYSTEM,
                           "no connection to port %d of %s: the loopback interface is down "
                           "(ip link set lo up)",
                           port, host);
        if (why.name && waited > NAME_PATIENCE_MS)
            return ct_fail(CT_ERR_SYSTEM, "the name %s has not resolved for %lld s: %s", host,
                           (long long)waited / 1000, refusal_words(why));
        if (long_wait_is_due(&wait))
            say_what_is_awaited(host, port, &why);
        if (clock_ms() + pause >= deadline)
            return why.name
                       ? ct_fail(CT_ERR_TIMEOUT, "the name %s did not resolve in %lld ms: %s", host,
                                 (long long)waited, refusal_words(why))
                       : ct_fail(CT_ERR_TIMEOUT, "no connection to port %d of %s in %lld ms: %s",
                                 port, host, (long long)waited, refusal_words(why));
        socket_sleep_ms(pause);
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
        if (clock_ms() + pause >= deadline) {
            const int error = errno;

            ct_fail(CT_ERR_TIMEOUT, "no connection to unix socket @%s: %s", name, strerror(error));
            errno = error;
            return CT_ERR_TIMEOUT;
        }
        socket_sleep_ms(pause);
        pause = longer(pause);
    }
    return CT_OK;
}
