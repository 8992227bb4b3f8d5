/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_connect.c - from an address to a store: connect, say hello, and for
 * ct_store_tcp() with is_master serve it first. */
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/net/socket.h"
#include "runtime/store/server/peer_uid.h"
#include "runtime/store/server/server_thread.h"
#include "runtime/store/tcp_wire.h"
#include "runtime/util/clock.h"

/* The magic in one send, as PyTorch's server wants it; then a PING, whose echo
 * says that it is a store and that it listens. */
static ct_status handshake(struct wire *w, int64_t deadline)
{
    const uint32_t magic = STORE_MAGIC, nonce = (uint32_t)getpid();
    const int64_t start = clock_ms();
    uint32_t echo = 0;
    ct_status status;

    wire_command(w, STORE_VALIDATE);
    wire_put(w, &magic, sizeof magic);
    status = wire_send(w);
    if (status != CT_OK)
        return status;
    wire_command(w, STORE_PING);
    wire_put(w, &nonce, sizeof nonce);
    status = wire_send(w);
    if (status != CT_OK)
        return status;
    if (!wire_ready(w, deadline))
        return ct_fail(CT_ERR_TIMEOUT, "no store answers at %s: silence for %lld ms", w->where,
                       (long long)(clock_ms() - start));
    status = wire_get(w, &echo, sizeof echo);
    if (status != CT_OK)
        return ct_fail(status, "no store answers at %s: %s", w->where, ct_last_error());
    return echo == nonce ? CT_OK : ct_fail(CT_ERR_PEER, "what answers at %s is no store", w->where);
}

/* Does the server's end belong to our user?  The kernel knows when the server has accepted:
 * a listener's uid is no answer, since another process may listen there by now. */
static ct_status is_our_users(int fd, const char *where, int64_t deadline, int *ours)
{
    const struct timespec pause = { 0, 200000 };
    const int64_t start = clock_ms();
    const int netlink = peer_uid_open();
    struct sockaddr_storage server = { 0 }, self = { 0 };
    socklen_t server_size = sizeof server, self_size = sizeof self;
    enum peer_place place = PEER_UNKNOWN;
    uid_t uid = 0;

    if (getpeername(fd, (struct sockaddr *)&server, &server_size) == 0
        && getsockname(fd, (struct sockaddr *)&self, &self_size) == 0)
        while ((place = peer_uid(netlink, &server, &self, &uid)) == PEER_PENDING
               && time_left_ms(deadline, 1) > 0)
            nanosleep(&pause, NULL);
    if (netlink >= 0)
        close(netlink);
    *ours = place == PEER_HERE && uid == geteuid();
    if (place != PEER_PENDING)
        return CT_OK;
    return ct_fail(CT_ERR_TIMEOUT, "no store answers at %s: silence for %lld ms", where,
                   (long long)(clock_ms() - start));
}

/* With a secret a server has to prove that it knows it, unless it is on this host and our user's:
 * a port of the loopback belongs to the user who took it first. */
static ct_status prove(const struct secret *secret, int fd, const char *where, int64_t deadline)
{
    int ours = 0;
    ct_status status = CT_OK;

    if (secret->size == 0)
        return CT_OK;
    if (socket_stays_here(fd))
        status = is_our_users(fd, where, deadline, &ours);
    return status != CT_OK || ours ? status
                                   : secret_prove(secret, fd, HELLO_CLIENT, where, deadline);
}

/* Anybody may take a name in the abstract name space. */
static ct_status is_ours(int fd, const char *where)
{
    uid_t uid = 0;
    const ct_status status = socket_peer(fd, NULL, &uid);

    if (status != CT_OK || uid == geteuid())
        return status;
    return ct_fail(CT_ERR_PEER, "the unix socket %s belongs to another user (uid %d)", where,
                   (int)uid);
}

ct_status store_client_connect(const char *host, int port, int64_t deadline, int timeout_ms,
                               ct_store **store)
{
    struct secret secret = { .size = 0 };
    const ct_status status = host[0] == '@' ? CT_OK : secret_read(&secret, NULL);

    if (status != CT_OK)
        return status;
    return store_client_connect_with(&secret, host, port, deadline, timeout_ms, store);
}

ct_status store_client_connect_with(const struct secret *secret, const char *host, int port,
                                    int64_t deadline, int timeout_ms, ct_store **store)
{
    char where[300];
    ct_store *s;
    int fd;
    ct_status status;

    if (host[0] == '@') {
        snprintf(where, sizeof where, "%s", host);
        status = socket_connect_unix(host + 1, deadline, &fd);
        if (status == CT_OK && (status = is_ours(fd, where)) != CT_OK)
            close(fd);
    } else {
        snprintf(where, sizeof where, "%s:%d", host, port);
        status = socket_connect(host, port, deadline, &fd);
        if (status == CT_OK && (status = prove(secret, fd, where, deadline)) != CT_OK)
            close(fd);
    }
    if (status == CT_OK)
        status = store_client_over(fd, where, timeout_ms, &s);
    if (status != CT_OK)
        return status;
    status = handshake(store_client_wire(s), deadline);
    if (status != CT_OK) {
        ct_store_close(s);
        return status;
    }
    *store = s;
    return CT_OK;
}

ct_status ct_store_tcp(const char *host, int port, int is_master, int timeout_ms, ct_store **store)
{
    struct store_host *server = NULL;
    int fd;
    ct_status status = CT_OK;

    if (!host || !store || port < 0 || port > 65535 || (port == 0 && !is_master))
        return ct_fail(CT_ERR_INVALID,
                       "ct_store_tcp: host %s, port %d; a host and a port from 1 "
                       "to 65535 are needed",
                       host ? host : "NULL", port);
    if (is_master) {
        status = socket_listen(host, port, &fd);
        if (status == CT_OK) {
            port = socket_port(fd);
            status = store_host_start(fd, &server);
        }
    }
    if (status == CT_OK)
        status = store_client_connect(host, port, deadline_after(timeout_ms), timeout_ms, store);
    if (status != CT_OK) {
        store_host_stop(server);
        return ct_fail_in(status, "ct_store_tcp: ");
    }
    store_client_hosts(*store, server);
    return CT_OK;
}
