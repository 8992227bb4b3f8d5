/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - the store on sockets: a table and its clients, on libevent.
 *
 * store/server/listener.c has the listener and says who is a client, store/server/connection.c
 * moves their bytes.  Why clients were closed is said once for each reason, and how many more when
 * the server ends.  No names are looked up. */
#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/store/server/connection.h"
#include "runtime/store/server/peer_uid.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"

#define LOOK_AGAIN_US 50

/* ---- Refusals --------------------------------------------------------------- */

static void describe_peer(int fd, char *text, size_t size)
{
    struct sockaddr_storage address = { 0 };
    socklen_t length = sizeof address;
    const struct sockaddr_in *v4 = (const void *)&address;
    const struct sockaddr_in6 *v6 = (const void *)&address;
    char host[64] = "";

    if (getpeername(fd, (struct sockaddr *)&address, &length) < 0
        || (address.ss_family != AF_INET && address.ss_family != AF_INET6)) {
        snprintf(text, size, "a client");
        return;
    }
    if (address.ss_family == AF_INET)
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
    else
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
    snprintf(text, size, "the client at %s port %d", host,
             ntohs(address.ss_family == AF_INET ? v4->sin_port : v6->sin6_port));
}

void server_refused(struct store_server *s, const struct conn *conn, const char *why)
{
    const size_t most = sizeof s->refusals / sizeof *s->refusals;
    char who[128];

    for (size_t i = 0; i < most; i++) {
        if (s->refusals[i].why && strcmp(s->refusals[i].why, why) != 0)
            continue;
        s->refusals[i].why = why;
        if (s->refusals[i].count++ > 0)
            return;
        describe_peer(conn->fd, who, sizeof who);
        log_line(LOG_WARN, "store: %s was closed: %s", who, why);
        return;
    }
}

static void say_the_rest(const struct store_server *s)
{
    const size_t most = sizeof s->refusals / sizeof *s->refusals;

    for (size_t i = 0; i < most && s->refusals[i].why; i++)
        if (s->refusals[i].count > 1)
            log_line(LOG_WARN, "store: so were %lu more: %s", s->refusals[i].count - 1,
                     s->refusals[i].why);
}

/* ---- Life ------------------------------------------------------------------- */

static void on_later(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    server_work(arg);
}

ct_status store_server_create(struct event_base *base, int listen_fd,
                              const struct store_policy *policy, struct store_server **server)
{
    struct store_server *s = calloc(1, sizeof *s);
    int listens;

    if (!s) {
        close(listen_fd);
        return ct_fail(CT_ERR_NOMEM, "no memory for the store");
    }
    s->base = base;
    s->policy = *policy;
    s->listener = listen_fd;
    s->netlink = peer_uid_open();
    descriptor_own(s->netlink);
    s->running = (struct link){ &s->running, &s->running };
    s->agents = (struct link){ &s->agents, &s->agents };
    evtimer_assign(&s->later, base, on_later, s);
    listens = guests_open(s);
    s->table = table_create(&conn_owner, policy->memory, policy->request);
    if (!s->table || listens < 0) {
        store_server_destroy(s);
        return ct_fail(CT_ERR_NOMEM, "no memory for the store");
    }
    *server = s;
    return CT_OK;
}

/* A client that was just answered often asks again at once.  To sleep and be woken for
 * that costs more than all the rest, on both sides: so for a moment we look again, and
 * let others run in between. */
void store_server_run(struct store_server *s, struct event_base *base)
{
    int64_t until = 0;

    if (!s) {
        event_base_dispatch(base);
        return;
    }
    do {
        const unsigned long served = s->served;

        event_base_loop(base, until ? EVLOOP_ONCE | EVLOOP_NONBLOCK : EVLOOP_ONCE);
        if (s->served != served)
            until = clock_us() + LOOK_AGAIN_US;
        else if (until && clock_us() > until)
            until = 0;
        else if (until)
            sched_yield();
    } while (!event_base_got_break(base));
}

void store_server_destroy(struct store_server *s)
{
    if (!s)
        return;
    guests_close(s);
    event_del(&s->later);
    table_destroy(s->table);
    say_the_rest(s);
    if (s->netlink >= 0)
        descriptor_close(s->netlink);
    free(s);
}

/* ---- From outside ----------------------------------------------------------- */

void store_server_clear(struct store_server *server)
{
    clients_forget(server);
    table_clear(server->table);
}

int store_server_clients(struct store_server *server)
{
    return atomic_load(&server->count);
}

int store_server_has(const struct store_server *server, const char *wire_key)
{
    return table_has(server->table, wire_key);
}

void store_server_on_guest(struct store_server *server, void (*came)(void *arg), void *arg)
{
    server->came = came;
    server->came_arg = arg;
}

static size_t add_blob(unsigned char *to, const void *data, size_t bytes)
{
    const uint64_t size = bytes;

    memcpy(to, &size, sizeof size);
    memcpy(to + sizeof size, data, bytes);
    return sizeof size + bytes;
}

/* A client without a socket: a set has no answer. */
void store_server_put(struct store_server *server, const char *wire_key, const void *data,
                      size_t bytes)
{
    const uint32_t magic = STORE_MAGIC;
    const size_t key = strlen(wire_key);
    unsigned char *request = malloc(32 + key + bytes);
    struct table_client *client = request ? table_client_create(server->table, NULL) : NULL;
    size_t size = 0, used;
    const char *why;

    if (client) {
        request[size++] = STORE_VALIDATE;
        memcpy(request + size, &magic, sizeof magic);
        size += sizeof magic;
        request[size++] = STORE_SET;
        size += add_blob(request + size, wire_key, key);
        size += add_blob(request + size, data, bytes);
        table_feed(client, request, size, &used, &why);
    }
    table_client_destroy(client);
    free(request);
}
