/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - serves the store on sockets.  libevent drives the listener and the connections, and
 * the engine holds the keys.
 *
 * A connection is pending until it is admitted (admission.c).  connection.c reads and writes its
 * bytes.  The server closes a pending connection after PENDING_SECONDS, since PyTorch's client
 * would wait forever on a silent server.  The policy limits the number of connections.  When
 * descriptors run out, the server closes a spare descriptor, to accept a connection and close it.
 * Otherwise the event loop would spin.
 *
 * Each reason for which connections were closed is logged once per host.  The number of repeats is
 * logged when the server ends.  No host names are looked up. */
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

#include "runtime/store/server/connection.h"
#include "runtime/net/peer_uid.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"

#define POLL_US 50           /* the event loop polls for this time after it got bytes */
#define PENDING_SECONDS 10   /* a connection must be admitted within this time */
#define MOST_UNVERIFIED 1024 /* most connections in store_server->unverified */
#define ACCEPTS 64           /* most connections that are accepted before others get a turn */

/* ---- Refusals --------------------------------------------------------------- */

/* Writes the address and the port of the peer; "" and 0 if the socket has no address. */
static void peer_address(int fd, char host[REFUSED_HOST], int *port)
{
    struct sockaddr_storage address = { 0 };
    socklen_t length = sizeof address;
    const struct sockaddr_in *v4 = (const void *)&address;
    const struct sockaddr_in6 *v6 = (const void *)&address;

    *host = 0;
    *port = 0;
    if (getpeername(fd, (struct sockaddr *)&address, &length) < 0
        || (address.ss_family != AF_INET && address.ss_family != AF_INET6))
        return;
    if (address.ss_family == AF_INET)
        inet_ntop(AF_INET, &v4->sin_addr, host, REFUSED_HOST);
    else
        inet_ntop(AF_INET6, &v6->sin6_addr, host, REFUSED_HOST);
    *port = ntohs(address.ss_family == AF_INET ? v4->sin_port : v6->sin6_port);
}

void server_log_refusal(struct store_server *s, const struct conn *conn, const char *why)
{
    const size_t most = sizeof s->refusals / sizeof *s->refusals;
    char host[REFUSED_HOST];
    int port;

    peer_address(conn->fd, host, &port);
    for (size_t i = 0; i < most; i++) {
        if (s->refusals[i].why
            && (strcmp(s->refusals[i].why, why) != 0 || strcmp(s->refusals[i].host, host) != 0))
            continue;
        s->refusals[i].why = why;
        strcpy(s->refusals[i].host, host);
        if (s->refusals[i].count++ > 0)
            return;
        if (*host)
            log_line(LOG_WARN, "store: the client at %s port %d was closed: %s", host, port, why);
        else
            log_line(LOG_WARN, "store: a client was closed: %s", why);
        return;
    }
}

static void log_repeats(const struct store_server *s)
{
    const size_t most = sizeof s->refusals / sizeof *s->refusals;

    for (size_t i = 0; i < most && s->refusals[i].why; i++)
        if (s->refusals[i].count > 1)
            log_line(LOG_WARN,
                     "store: %lu more connections%s%s were closed for the same reason: %s",
                     s->refusals[i].count - 1, *s->refusals[i].host ? " from " : "",
                     s->refusals[i].host, s->refusals[i].why);
}

/* ---- Pending connections ---------------------------------------------------- */

static struct conn *server_first_of(const struct list_node *list)
{
    return list_is_empty(list) ? NULL : (struct conn *)list->next; /* `all` is the first member */
}

static int64_t oldest_deadline(const struct list_node *list)
{
    const struct conn *conn = server_first_of(list);

    return conn ? conn->accepted_at + PENDING_SECONDS * 1000 : NO_DEADLINE;
}

static void arm_timer(struct store_server *s)
{
    const int64_t pending = oldest_deadline(&s->pending),
                  unverified = oldest_deadline(&s->unverified);
    const int64_t end = pending < unverified ? pending : unverified;
    struct timeval time = { 0, 0 };

    if (end == NO_DEADLINE || event_pending(&s->timer, EV_TIMEOUT, NULL))
        return;
    time.tv_sec = 1 + time_left_ms(end, PENDING_SECONDS * 1000) / 1000;
    event_add(&s->timer, &time);
}

/* Closes the connections that are pending for too long.  The oldest connections come first in the
 * list. */
static void close_overdue(const struct list_node *list)
{
    while (oldest_deadline(list) <= clock_ms()) {
        struct conn *conn = server_first_of(list);

        conn_close(conn, conn->closing ? NULL : "it did not identify itself in time");
    }
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct store_server *s = arg;

    (void)fd;
    (void)what;
    close_overdue(&s->pending);
    close_overdue(&s->unverified);
    arm_timer(s);
    server_work(s);
}

static void leave_list(struct conn *conn)
{
    list_unlink(&conn->all);
    conn->server->unverified_count -= conn->unverified;
    conn->unverified = 0;
}

void server_admit(struct conn *conn)
{
    conn->admitted = 1;
    leave_list(conn);
    list_append(&conn->server->conns, &conn->all);
}

void server_unadmit(struct conn *conn)
{
    struct store_server *s = conn->server;

    conn->accepted_at = clock_ms();
    leave_list(conn);
    list_append(&s->pending, &conn->all);
    arm_timer(s);
}

void server_remove(struct conn *conn)
{
    leave_list(conn);
    conn->server->count--;
}

/* Closes the unverified connection that has been pending longest.  Returns 0 if there is no
 * unverified connection. */
static int evict_unverified(struct store_server *s)
{
    struct conn *conn = server_first_of(&s->unverified);

    if (conn)
        conn_close(conn, "it did not identify itself, and other clients need its place");
    return conn != NULL;
}

/* ---- Accepting -------------------------------------------------------------- */

static void server_add_pending(struct conn *conn)
{
    struct store_server *s = conn->server;

    conn->unverified = admission_is_remote(conn);
    list_append(conn->unverified ? &s->unverified : &s->pending, &conn->all);
    s->unverified_count += conn->unverified;
    if (s->unverified_count > MOST_UNVERIFIED || s->count > s->policy.clients)
        if (server_first_of(&s->unverified) == conn
            || !evict_unverified(s)) /* no other connection can be evicted */
            conn_close(conn, "there are as many clients as are allowed (raise --store-clients)");
}

static void server_accept_one(struct store_server *s, int fd)
{
    struct conn *conn = calloc(1, sizeof *conn);
    const char *why = "there is no memory for it";

    if (!conn) {
        descriptor_close(fd);
        return;
    }
    conn->server = s;
    conn->fd = fd;
    s->count++;
    if (conn_start(conn) < 0 || admission_locate(conn, &why) == ADMISSION_REFUSED)
        conn_close(conn, why);
    else
        server_add_pending(conn);
}

/* Handles a lack of descriptors.  If no unverified connection can be closed, closes the spare
 * descriptor, accepts a connection and closes it.  Otherwise the listener would stay readable and
 * the event loop would spin. */
static void refuse_one(struct store_server *s)
{
    const struct conn none = { .fd = -1 };
    int fd;

    if (evict_unverified(s))
        return;
    descriptor_close(s->spare);
    fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    descriptor_own(s->spare);
    server_log_refusal(s, &none, "no file descriptor is left (ulimit -n)");
}

static void on_acceptable(evutil_socket_t listener, short what, void *arg)
{
    struct store_server *s = arg;
    int fd = 0;

    (void)what;
    for (int i = 0; i < ACCEPTS && fd >= 0; i++) {
        fd = descriptor_accept(listener);
        if (fd >= 0)
            server_accept_one(s, fd);
        if (fd >= 0 && s->on_accept)
            s->on_accept(s->on_accept_arg);
    }
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        refuse_one(s);
    arm_timer(s);
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
    if (!s->is_unix) /* accepted connections inherit TCP_NODELAY */
        setsockopt(s->listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static int listener_open(struct store_server *s)
{
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    descriptor_own(s->spare);
    list_init(&s->conns);
    list_init(&s->pending);
    list_init(&s->unverified);
    descriptor_own(s->listener);
    setup_listener(s);
    event_assign(&s->acceptable, s->base, s->listener, EV_READ | EV_PERSIST, on_acceptable, s);
    evtimer_assign(&s->timer, s->base, on_timer, s);
    return event_add(&s->acceptable, NULL);
}

static void server_free_all(const struct list_node *list)
{
    while (server_first_of(list))
        conn_free(server_first_of(list));
}

/* Shuts the listener down.  close() alone may not free the port, since a child that was forked just
 * now may still have a copy of the listener. */
void store_server_accept_no_more(struct store_server *s)
{
    event_del(&s->acceptable);
    shutdown(s->listener, SHUT_RDWR);
}

static void listener_close(struct store_server *s)
{
    server_free_all(&s->pending);
    server_free_all(&s->unverified);
    server_free_all(&s->conns);
    store_server_accept_no_more(s);
    event_del(&s->timer);
    descriptor_close(s->listener);
    if (s->spare >= 0)
        descriptor_close(s->spare);
}

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
    ct_status status = s ? CT_OK : ct_fail(CT_ERR_NOMEM, "no memory for the store");
    int listens;

    if (status == CT_OK && policy->encrypts)
        status = secret_context(&policy->secret, "store", &s->context);
    if (status != CT_OK) {
        close(listen_fd);
        free(s);
        return status;
    }
    s->base = base;
    s->policy = *policy;
    s->listener = listen_fd;
    s->netlink = peer_uid_open();
    descriptor_own(s->netlink);
    list_init(&s->running);
    list_init(&s->agents);
    evtimer_assign(&s->later, base, on_later, s);
    listens = listener_open(s);
    s->engine = engine_create(&conn_reply_hooks, policy->memory, policy->request);
    if (!s->engine || listens < 0) {
        store_server_destroy(s);
        return ct_fail(CT_ERR_NOMEM, "no memory for the store");
    }
    *server = s;
    return CT_OK;
}

/* Runs the event loop.  A client that just got its reply often sends its next request at once.  To
 * sleep and be woken costs both sides more time than the request itself.  So the loop polls for
 * POLL_US after a request and yields the CPU in between. */
void store_server_run(struct store_server *s, struct event_base *base)
{
    int64_t until = 0;

    if (!s) {
        event_base_dispatch(base);
        return;
    }
    do {
        const unsigned long reads = s->reads;

        if (event_base_loop(base, until ? EVLOOP_ONCE | EVLOOP_NONBLOCK : EVLOOP_ONCE) < 0)
            return; /* the program has closed the descriptors of the loop and the clients */
        if (s->reads != reads)
            until = clock_us() + POLL_US;
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
    listener_close(s);
    event_del(&s->later);
    engine_destroy(s->engine);
    secure_context_destroy(s->context);
    log_repeats(s);
    if (s->netlink >= 0)
        descriptor_close(s->netlink);
    free(s);
}

/* ---- From outside ----------------------------------------------------------- */

/* Closes all connections except those of launchers, which belong to no round.  A launcher stays
 * even if it is still proving the secret or if its connection is about to end, since the
 * coordinator may use its agent while a round begins. */
static void close_programs(struct list_node *list)
{
    struct list_node launchers;

    list_init(&launchers);
    while (server_first_of(list)) {
        struct conn *conn = server_first_of(list);

        if (conn->agent || admission_is_launcher(conn)) {
            list_unlink(&conn->all);
            list_append(&launchers, &conn->all);
            continue;
        }
        if (conn->session)
            session_abort(conn->session);
        conn->session = NULL;
        conn_free(conn);
    }
    list_splice(list, &launchers);
}

/* Closes the connections of the previous round's programs.  The programs have ended, but their
 * requests may still be in sockets or partly done.  Their keys are deleted now. */
static void close_clients(struct store_server *s)
{
    int fd;

    while ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        close(fd);
    close_programs(&s->conns);
    close_programs(&s->pending);
    close_programs(&s->unverified);
}

void store_server_clear(struct store_server *server)
{
    close_clients(server);
    engine_clear(server->engine);
}

int store_server_clients(struct store_server *server)
{
    return atomic_load(&server->count);
}

int store_server_has(const struct store_server *server, const char *wire_key)
{
    return engine_has(server->engine, wire_key);
}

void store_server_on_connection(struct store_server *server, void (*on_accept)(void *arg),
                                void *arg)
{
    server->on_accept = on_accept;
    server->on_accept_arg = arg;
}

static size_t server_add_blob(unsigned char *to, const void *data, size_t bytes)
{
    const uint64_t size = bytes;

    memcpy(to, &size, sizeof size);
    memcpy(to + sizeof size, data, bytes);
    return sizeof size + bytes;
}

/* Sets a key by a session without a socket, which works because SET has no reply. */
void store_server_put(struct store_server *server, const char *wire_key, const void *data,
                      size_t bytes)
{
    const uint32_t magic = STORE_MAGIC;
    const size_t key = strlen(wire_key);
    unsigned char *request = malloc(32 + key + bytes);
    struct session *session = request ? session_create(server->engine, NULL) : NULL;
    size_t size = 0, used;
    const char *why;

    if (session) {
        request[size++] = STORE_VALIDATE;
        memcpy(request + size, &magic, sizeof magic);
        size += sizeof magic;
        request[size++] = STORE_SET;
        size += server_add_blob(request + size, wire_key, key);
        size += server_add_blob(request + size, data, bytes);
        session_feed(session, request, size, &used, &why);
    }
    session_destroy(session);
    free(request);
}
