/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c - who comes to the store's server, and until when.
 *
 * A connection is a guest until it has shown who it is (store/server/admission.c); a guest that
 * takes long is closed, since PyTorch's client would wait for ever on a silent server.  There is an
 * upper bound to how many connections there are.  When descriptors run out, a spare one is given up
 * to accept and close, so that the listener does not spin. */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/store/server/connection.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"

#define GUEST_SECONDS 10
#define MOST_STRANGERS 1024
#define ACCEPTS 64 /* at a time; then those who are there already have their turn */

static struct conn *first_of(const struct link *ring)
{
    return link_alone(ring) ? NULL : (struct conn *)ring->next; /* `all` comes first */
}

/* ---- Patience --------------------------------------------------------------- */

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

/* ---- Guest or client --------------------------------------------------------- */

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
    descriptor_close(s->spare);
    fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    descriptor_own(s->spare);
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

int guests_open(struct store_server *s)
{
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    descriptor_own(s->spare);
    ring(&s->conns), ring(&s->guests), ring(&s->strangers);
    descriptor_own(s->listener);
    setup_listener(s);
    event_assign(&s->acceptable, s->base, s->listener, EV_READ | EV_PERSIST, on_acceptable, s);
    evtimer_assign(&s->patience, s->base, on_patience, s);
    return event_add(&s->acceptable, NULL);
}

static void empty(const struct link *ring)
{
    while (first_of(ring))
        conn_free(first_of(ring));
}

/* Launchers stay, also those that still prove their secret, or whose connection is about to end:
 * they belong to no round, and their owner may hold on to them while a round begins. */
static void forget_programs(struct link *ring)
{
    struct link launchers = { &launchers, &launchers };

    while (first_of(ring)) {
        struct conn *conn = first_of(ring);

        if (conn->agent || door_is_launchers(conn)) {
            link_out(&conn->all);
            link_last(&launchers, &conn->all);
            continue;
        }
        if (conn->table)
            table_client_drop(conn->table);
        conn->table = NULL;
        conn_free(conn);
    }
    link_move(ring, &launchers);
}

/* Programs of the round before have ended, but what they sent may still lie in their
 * sockets, or in requests that are half done: it is for keys that are gone. */
void clients_forget(struct store_server *s)
{
    int fd;

    while ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        close(fd);
    forget_programs(&s->conns);
    forget_programs(&s->guests);
    forget_programs(&s->strangers);
}

void guests_close(struct store_server *s)
{
    empty(&s->guests);
    empty(&s->strangers);
    empty(&s->conns);
    event_del(&s->acceptable);
    event_del(&s->patience);
    /* A child that was forked this moment may still have its copy, and the port is wanted. */
    shutdown(s->listener, SHUT_RDWR);
    descriptor_close(s->listener);
    if (s->spare >= 0)
        descriptor_close(s->spare);
}
