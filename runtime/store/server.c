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
#include "runtime/store/peer_uid.h"

#define GUEST_SECONDS 10
#define LOOK_AGAIN_US 50
#define MOST_STRANGERS 1024
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

static struct conn *first_of(const struct link *ring)
{
    return link_alone(ring) ? NULL : (struct conn *)ring->next; /* `all` comes first */
}

static int64_t end_of_patience(const struct link *ring)
{
    const struct conn *guest = first_of(ring);

    return guest ? guest->came + GUEST_SECONDS * 1000 : NO_DEADLINE;
}

static void wait_for_guests(struct store_server *s)
{
    const int64_t guests = end_of_patience(&s->guests), strangers = end_of_patience(&s->strangers);
    const int64_t end = guests < strangers ? guests : strangers;
    struct timeval time = { 0, 0 };

    if (end == NO_DEADLINE || event_pending(&s->patience, EV_TIMEOUT, NULL))
        return;
    time.tv_sec = 1 + time_left_ms(end, GUEST_SECONDS * 1000) / 1000;
    event_add(&s->patience, &time);
}

/* The longest here come first. */
static void close_the_late(const struct link *ring)
{
    while (end_of_patience(ring) <= clock_ms()) {
        struct conn *guest = first_of(ring);

        conn_close(guest, guest->last_words ? NULL : "it did not say what it is in time");
    }
}

static void on_patience(evutil_socket_t fd, short what, void *arg)
{
    struct store_server *s = arg;

    (void)fd;
    (void)what;
    close_the_late(&s->guests);
    close_the_late(&s->strangers);
    wait_for_guests(s);
    server_work(s);
}

static void leave_ring(struct conn *conn)
{
    link_out(&conn->all);
    conn->server->stranger_count -= conn->stranger;
    conn->stranger = 0;
}

void server_let_in(struct conn *conn)
{
    conn->known = 1;
    leave_ring(conn);
    link_last(&conn->server->conns, &conn->all);
}

void server_back_to_guests(struct conn *conn)
{
    struct store_server *s = conn->server;

    conn->came = clock_ms();
    leave_ring(conn);
    link_last(&s->guests, &conn->all);
    wait_for_guests(s);
}

void server_gone(struct conn *conn)
{
    leave_ring(conn);
    conn->server->count--;
}

/* Where there is no room for all, strangers that have waited longest go first. */
static int make_room(struct store_server *s)
{
    struct conn *stranger = first_of(&s->strangers);

    if (stranger)
        conn_close(stranger, "it did not say what it is, and others need its place");
    return stranger != NULL;
}

/* ---- Accepting -------------------------------------------------------------- */

static void take_in(struct conn *conn)
{
    struct store_server *s = conn->server;

    conn->stranger = door_is_strangers(conn);
    link_last(conn->stranger ? &s->strangers : &s->guests, &conn->all);
    s->stranger_count += conn->stranger;
    if (s->stranger_count > MOST_STRANGERS || s->count > s->policy.clients)
        if (!make_room(s))
            conn_close(conn, "there are as many clients as are allowed (store-clients in job.ini)");
}

static void welcome(struct store_server *s, int fd)
{
    struct conn *conn = calloc(1, sizeof *conn);
    const char *why = "there is no memory for it";

    if (!conn) {
        close(fd);
        return;
    }
    conn->server = s;
    conn->fd = fd;
    s->count++;
    if (conn_start(conn) < 0 || door_look(conn, &why) == DOOR_REFUSED)
        conn_close(conn, why);
    else
        take_in(conn);
}

/* No descriptor is left.  If no stranger can go, take the connection with the spare one
 * and close it, or the listener would stay readable and the loop would spin. */
static void refuse_one(struct store_server *s)
{
    const struct conn nobody = { .fd = -1 };
    int fd;

    if (make_room(s))
        return;
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
        if (fd >= 0 && s->came)
            s->came(s->came_arg);
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
    s->netlink = peer_uid_open();
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ring(&s->conns), ring(&s->guests), ring(&s->strangers);
    ring(&s->running), ring(&s->agents);
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

static void empty(const struct link *ring)
{
    while (first_of(ring))
        conn_free(first_of(ring));
}

/* Programs of the round before have ended, but what they sent may still lie in their
 * sockets, or in requests that are half done: it is for keys that are gone. */
static void forget_clients(struct store_server *s)
{
    struct link agents = { &agents, &agents };
    int fd;

    while ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        close(fd);
    while (first_of(&s->conns)) {
        struct conn *conn = first_of(&s->conns);

        if (conn->agent) {
            link_out(&conn->all);
            link_last(&agents, &conn->all);
            continue;
        }
        table_client_drop(conn->table);
        conn->table = NULL;
        conn_free(conn);
    }
    link_move(&s->conns, &agents);
    empty(&s->guests);
    empty(&s->strangers);
}

void store_server_clear(struct store_server *server)
{
    forget_clients(server);
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

void store_server_destroy(struct store_server *s)
{
    if (!s)
        return;
    empty(&s->guests);
    empty(&s->strangers);
    empty(&s->conns);
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
