/* SPDX-License-Identifier: Apache-2.0 */
/* connection.c - the bytes of one connection: socket -> door -> table -> socket.
 *
 * Answers to what a client just sent gather in one buffer of the server's and go
 * out in one send; what the socket does not take waits in the client's outbox.
 * Whoever needs more than a turn (a request with very many keys, an answer of
 * many megabytes, ten thousand clients to be told that a key is there) stands in
 * server->running and gets its next turn when the others had theirs.  A client
 * that does not read its answers is not read any further. */
#include "runtime/store/server/connection.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/util/clock.h"
#include "runtime/util/forks.h"

#define OUT_HIGH ((size_t)256 << 10)
#define OUT_LOW ((size_t)64 << 10)
#define DOOR_BYTES 64
#define WORK_US 200 /* then the loop looks at its sockets again */

/* ---- Out -------------------------------------------------------------------- */

void conn_run_later(struct conn *conn)
{
    if (link_alone(&conn->run))
        link_last(&conn->server->running, &conn->run);
}

static void fail(struct conn *conn)
{
    conn->broken = 1;
    conn_run_later(conn);
}

static size_t waiting(const struct conn *conn)
{
    const struct store_server *s = conn->server;

    return conn->out.bytes + (s->current == conn ? s->answers_size : 0);
}

/* What gathered goes behind what waits already. */
static void answers_to_outbox(struct conn *conn)
{
    struct store_server *s = conn->server;

    if (s->current != conn || s->answers_size == 0)
        return;
    if (outbox_add(&conn->out, s->answers, s->answers_size) < 0)
        fail(conn);
    s->answers_size = 0;
}

void conn_send(struct conn *conn, const void *data, size_t bytes)
{
    struct store_server *s = conn->server;

    if (s->current == conn && !conn->out.first && bytes <= IN_BYTES - s->answers_size) {
        memcpy(s->answers + s->answers_size, data, bytes);
        s->answers_size += bytes;
        return;
    }
    answers_to_outbox(conn);
    if (outbox_add(&conn->out, data, bytes) < 0)
        fail(conn);
    conn_run_later(conn);
}

static int take_reply(void *owner, const void *data, size_t bytes)
{
    conn_send(owner, data, bytes);
    return waiting(owner) > OUT_HIGH;
}

static int take_value(void *owner, struct value *value)
{
    struct conn *conn = owner;

    answers_to_outbox(conn);
    if (outbox_lend(&conn->out, value) < 0)
        fail(conn);
    conn_run_later(conn);
    return waiting(conn) > OUT_HIGH;
}

const struct table_owner conn_owner = { .reply = take_reply, .reply_value = take_value };

static void wait_until_writable(struct conn *conn)
{
    conn->blocked = 1;
    event_add(&conn->writable, NULL);
}

/* Sends what gathered for the current connection. */
static void send_answers(struct conn *conn)
{
    struct store_server *s = conn->server;
    ssize_t n = 0;

    if (s->answers_size > 0 && !conn->blocked)
        n = send(conn->fd, s->answers, s->answers_size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        fail(conn);
    else if (n < (ssize_t)s->answers_size) {
        if (outbox_add(&conn->out, s->answers + (n > 0 ? n : 0),
                       s->answers_size - (size_t)(n > 0 ? n : 0))
            < 0)
            fail(conn);
        conn_run_later(conn);
    }
    s->answers_size = 0;
}

/* ---- In --------------------------------------------------------------------- */

static void rest(struct conn *conn)
{
    conn->resting = 1;
    event_del(&conn->readable);
}

/* Bytes for later: they may lie in conn->left already. */
static int keep(struct conn *conn, const unsigned char *data, size_t bytes)
{
    unsigned char *left;

    if (conn->left && data >= conn->left && data <= conn->left + conn->left_size) {
        conn->left_at = (size_t)(data - conn->left);
        return 0;
    }
    if (bytes == 0)
        return 0;
    left = budget_alloc(conn->out.budget, bytes);
    if (!left)
        return -1;
    memcpy(left, data, bytes);
    conn->left = left;
    conn->left_at = 0;
    conn->left_size = bytes;
    return 0;
}

static void drop_left(struct conn *conn)
{
    budget_free(conn->out.budget, conn->left, conn->left_size);
    conn->left = NULL;
    conn->left_at = conn->left_size = 0;
}

/* The table's part.  0; or -1: the client is to be closed, for *why (NULL: silently). */
static int feed_table(struct conn *conn, const unsigned char *data, size_t bytes, const char **why)
{
    size_t used;

    switch (table_feed(conn->table, data, bytes, &used, why)) {
    case TABLE_BROKEN:
        return -1;
    case TABLE_BUSY:
        if (keep(conn, data + used, bytes - used) < 0) {
            *why = "the store has no memory left for its request (store-memory in job.ini)";
            return -1;
        }
        if (!conn->resting)
            rest(conn);
        conn_run_later(conn);
        return 0;
    case TABLE_READY:
        break;
    }
    if (!conn->known && table_client_is_valid(conn->table))
        server_let_in(conn); /* from here on it may be silent for days */
    drop_left(conn);
    if (conn->resting) {
        conn->resting = 0;
        event_add(&conn->readable, NULL);
    }
    return 0;
}

/* The door's part: bytes in front may be its own. */
static int feed_door(struct conn *conn, const unsigned char **data, size_t *bytes, const char **why)
{
    size_t used = 0;
    const enum door_state state = door_knock(conn, *data, *bytes, &used, why);

    *data += used;
    *bytes -= used;
    if (state == DOOR_REFUSED)
        return -1;
    if (state == DOOR_SHUT) {
        if (door_question(conn) && !conn->resting)
            rest(conn);
        return keep(conn, *data, *bytes);
    }
    door_destroy(conn->door);
    conn->door = NULL;
    if (state == DOOR_AGENT) {
        server_let_in(conn);
        return agent_start(conn);
    }
    conn->table = table_client_create(conn->server->table, conn);
    return conn->table ? 0 : -1;
}

static int feed(struct conn *conn, const unsigned char *data, size_t bytes, const char **why)
{
    *why = NULL;
    if (conn->door && feed_door(conn, &data, &bytes, why) < 0)
        return -1;
    if (conn->door)
        return 0;
    if (conn->agent)
        return agent_take(conn, data, bytes);
    return feed_table(conn, data, bytes, why);
}

/* Answers to what came before a mistake are due; then the connection ends, soon. */
static void end_with(struct conn *conn, const char *why)
{
    if (why)
        server_refused(conn->server, conn, why);
    server_back_to_guests(conn);
    conn->last_words = 1;
    if (!conn->resting)
        rest(conn);
    conn_run_later(conn);
}

void conn_take(struct conn *conn, const unsigned char *data, size_t bytes)
{
    struct store_server *s = conn->server;
    const char *why;
    int failed;

    s->served++;
    s->current = conn;
    failed = feed(conn, data, bytes, &why);
    send_answers(conn);
    s->current = NULL;
    if (failed)
        end_with(conn, why);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;
    struct store_server *s = conn->server;
    const size_t most = conn->door ? DOOR_BYTES : sizeof s->in; /* a guest may not fill memory */
    const ssize_t n = recv(fd, s->in, most, MSG_DONTWAIT);

    (void)what;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        conn_close(conn, NULL);
    else if (n > 0)
        conn_take(conn, s->in, (size_t)n);
    server_work(s);
}

/* ---- Turns ------------------------------------------------------------------ */

/* 0, or -1: the connection was closed. */
static int push_out(struct conn *conn)
{
    if (conn->out.first && !conn->blocked && outbox_send(&conn->out, conn->fd) < 0) {
        if (errno == EAGAIN || errno == EINTR)
            wait_until_writable(conn);
        else
            conn->broken = 1;
    }
    if (!conn->broken && !(conn->last_words && !conn->out.first))
        return 0;
    conn_close(conn, NULL);
    return -1;
}

static int may_go_on(const struct conn *conn)
{
    return conn->resting && !conn->last_words
           && (conn->table ? conn->out.bytes <= OUT_LOW : !door_question(conn));
}

/* What it sent and was not looked at yet; there may be nothing. */
static void take_what_is_left(struct conn *conn)
{
    static const unsigned char nothing[1];

    if (conn->left)
        conn_take(conn, conn->left + conn->left_at, conn->left_size - conn->left_at);
    else
        conn_take(conn, nothing, 0);
}

static void take_a_turn(struct conn *conn)
{
    link_out(&conn->run);
    if (push_out(conn) < 0)
        return;
    if (may_go_on(conn))
        take_what_is_left(conn);
    if (conn->out.first && !conn->blocked)
        conn_run_later(conn);
}

void server_work(struct store_server *s)
{
    static const struct timeval at_once = { 0, 0 };
    int64_t start = 0;
    int more;

    do {
        more = table_work(s->table);
        if (!link_alone(&s->running)) {
            take_a_turn((struct conn *)((char *)s->running.next - offsetof(struct conn, run)));
            more = 1;
        }
        if (more && start == 0)
            start = clock_us();
    } while (more && clock_us() - start < WORK_US);
    if (more && !event_pending(&s->later, EV_TIMEOUT, NULL))
        event_add(&s->later, &at_once); /* by way of the sockets: a timer, not an active event */
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;

    (void)fd;
    (void)what;
    conn->blocked = 0;
    conn_run_later(conn);
    server_work(conn->server);
}

/* ---- Life ------------------------------------------------------------------- */

int conn_start(struct conn *conn)
{
    struct store_server *s = conn->server;

    conn->out.budget = table_budget(s->table);
    conn->all = (struct link){ &conn->all, &conn->all };
    conn->run = (struct link){ &conn->run, &conn->run };
    event_assign(&conn->readable, s->base, conn->fd, EV_READ | EV_PERSIST, on_readable, conn);
    event_assign(&conn->writable, s->base, conn->fd, EV_WRITE, on_writable, conn);
    descriptor_own(conn->fd);
    conn->came = clock_ms();
    conn->door = door_create();
    return conn->door ? event_add(&conn->readable, NULL) : -1;
}

void conn_close(struct conn *conn, const char *why)
{
    if (why)
        server_refused(conn->server, conn, why);
    conn_free(conn);
}

void conn_free(struct conn *conn)
{
    server_gone(conn);
    link_out(&conn->run);
    agent_free(conn);
    table_client_destroy(conn->table);
    door_destroy(conn->door);
    event_del(&conn->readable);
    event_del(&conn->writable);
    drop_left(conn);
    outbox_empty(&conn->out);
    shutdown(conn->fd, SHUT_RDWR); /* as the listener, in guests_close() */
    descriptor_close(conn->fd);
    free(conn);
}
