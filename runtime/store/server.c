/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - the store on sockets: a listener and its connections, on libevent.
 *
 * A connection is a guest until it has shown who it is (store/door.c); a guest that
 * takes long is closed, since PyTorch's client would wait for ever on a silent
 * server.  There is an upper bound to how many there are.  When descriptors run
 * out, a spare one is given up to accept and close, so that the listener does not
 * spin.  No names are looked up. */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/socket.h"
#include "runtime/store/conn.h"

#define GUEST_SECONDS 10
#define LOOK_AGAIN_US 50
#define ACCEPTS 64 /* at a time; then those who are there already have their turn */

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

/* ---- Guests and clients ----------------------------------------------------- */

static struct conn *first_guest(const struct store_server *s)
{
    return link_alone(&s->guests) ? NULL : (struct conn *)s->guests.next; /* `all` comes first */
}

static void wait_for_guests(struct store_server *s)
{
    const struct conn *guest = first_guest(s);
    struct timeval time = { 0, 0 };

    if (!guest || event_pending(&s->patience, EV_TIMEOUT, NULL))
        return;
    time.tv_sec = 1 + time_left_ms(guest->came + GUEST_SECONDS * 1000, GUEST_SECONDS * 1000) / 1000;
    event_add(&s->patience, &time);
}

/* The longest here come first. */
static void on_patience(evutil_socket_t fd, short what, void *arg)
{
    struct store_server *s = arg;
    struct conn *guest;

    (void)fd;
    (void)what;
    while ((guest = first_guest(s)) && guest->came + GUEST_SECONDS * 1000 <= clock_ms())
        conn_close(guest, guest->last_words ? NULL : "it did not say what it is in time");
    wait_for_guests(s);
    server_work(s);
}

void server_let_in(struct conn *conn)
{
    conn->known = 1;
    link_out(&conn->all);
    link_last(&conn->server->conns, &conn->all);
}

void server_back_to_guests(struct conn *conn)
{
    struct store_server *s = conn->server;

    conn->came = clock_ms();
    link_out(&conn->all);
    link_last(&s->guests, &conn->all);
    wait_for_guests(s);
}

void server_gone(struct conn *conn)
{
    link_out(&conn->all);
    conn->server->count--;
}

/* ---- Accepting -------------------------------------------------------------- */

static void welcome(struct store_server *s, int fd)
{
    struct conn *conn = calloc(1, sizeof *conn);
    uid_t uid;

    if (!conn) {
        close(fd);
        return;
    }
    conn->server = s;
    conn->fd = fd;
    s->count++;
    if (conn_start(conn) < 0) {
        conn_close(conn, "there is no memory for it");
        return;
    }
    link_last(&s->guests, &conn->all);
    if (s->count > s->policy.clients)
        conn_close(conn, "there are as many clients as are allowed (store-clients in job.ini)");
    else if (s->is_unix && (socket_peer(fd, NULL, &uid) != CT_OK || uid != geteuid()))
        conn_close(conn, "it belongs to another user of this host");
}

/* No descriptor is left: take the connection with the spare one and close it, or
 * the listener would stay readable and the loop would spin. */
static void refuse_one(struct store_server *s)
{
    const struct conn nobody = { .fd = -1 };
    int fd;

    close(s->spare);
    fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    server_refused(s, &nobody, "no file descriptor is left (ulimit -n)");
}

static void on_acceptable(evutil_socket_t listener, short what, void *arg)
{
    struct store_server *s = arg;
    int fd = 0;

    (void)what;
    for (int i = 0; i < ACCEPTS && fd >= 0; i++) {
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            welcome(s, fd);
    }
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        refuse_one(s);
    wait_for_guests(s);
}

static void on_later(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    server_work(arg);
}

/* ---- Life ------------------------------------------------------------------- */

static void setup_listener(struct store_server *s)
{
    struct sockaddr_storage address = { 0 };
    socklen_t length = sizeof address;
    const int on = 1;

    fcntl(s->listener, F_SETFL, fcntl(s->listener, F_GETFL) | O_NONBLOCK);
    getsockname(s->listener, (struct sockaddr *)&address, &length);
    s->is_unix = address.ss_family == AF_UNIX;
    if (!s->is_unix) /* connections inherit it */
        setsockopt(s->listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void ring(struct link *link)
{
    *link = (struct link){ link, link };
}

ct_status store_server_create(struct event_base *base, int listen_fd,
                              const struct store_policy *policy, struct store_server **server)
{
    struct store_server *s = calloc(1, sizeof *s);

    if (!s) {
        close(listen_fd);
        return ct_fail(CT_ERR_NOMEM, "no memory for the store");
    }
    s->base = base;
    s->policy = *policy;
    s->listener = listen_fd;
    s->netlink = -1;
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ring(&s->conns), ring(&s->guests), ring(&s->running), ring(&s->agents);
    setup_listener(s);
    event_assign(&s->acceptable, base, listen_fd, EV_READ | EV_PERSIST, on_acceptable, s);
    evtimer_assign(&s->later, base, on_later, s);
    evtimer_assign(&s->patience, base, on_patience, s);
    s->table = table_create(&conn_owner, policy->memory, policy->request);
    if (!s->table || event_add(&s->acceptable, NULL) < 0) {
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

void store_server_clear(struct store_server *server)
{
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

void store_server_destroy(struct store_server *s)
{
    if (!s)
        return;
    while (first_guest(s))
        conn_free(first_guest(s));
    while (!link_alone(&s->conns))
        conn_free((struct conn *)s->conns.next);
    event_del(&s->acceptable);
    event_del(&s->later);
    event_del(&s->patience);
    table_destroy(s->table);
    say_the_rest(s);
    close(s->listener);
    if (s->spare >= 0)
        close(s->spare);
    if (s->netlink >= 0)
        close(s->netlink);
    free(s);
}
