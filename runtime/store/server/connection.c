/* SPDX-License-Identifier: Apache-2.0 */
/* connection.c - reads the requests of a connection and writes the replies.  Bytes from the socket
 * go to the admission, and after the admission to the session or the agent.
 *
 * Replies to bytes that just came are collected in server->answers and sent with one call.  Bytes
 * that the socket does not take wait in the connection's send queue.  A connection may need more
 * than one turn, for example for a request with many keys or a reply of many megabytes.  It then
 * waits in server->running until other connections have had a turn.  If a client does not read its
 * replies, the server does not read its requests.
 *
 * If the server encrypts, the first byte of a connection tells whether the client encrypts, too.
 * admission.c decides which unencrypted clients may be served.  A channel reads ahead, so it may
 * have bytes although the socket is not readable.  The connection gets a turn for such bytes. */
#include "runtime/store/server/connection.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/util/clock.h"
#include "runtime/util/forks.h"

#define OUT_HIGH ((size_t)256 << 10) /* a session pauses when more bytes than this are unsent */
#define OUT_LOW ((size_t)64 << 10)   /* a session resumes when at most so many bytes are unsent */
#define ADMISSION_BYTES 64           /* most bytes read at once before the admission */
#define WORK_US 200                  /* work between two checks of the sockets */

/* ---- Out -------------------------------------------------------------------- */

void conn_run_later(struct conn *conn)
{
    if (list_is_empty(&conn->run))
        list_append(&conn->server->running, &conn->run);
}

static void connection_fail(struct conn *conn)
{
    conn->broken = 1;
    conn_run_later(conn);
}

static size_t waiting(const struct conn *conn)
{
    const struct store_server *s = conn->server;

    return conn->out.bytes + (s->current == conn ? s->answers_size : 0);
}

/* Moves the collected replies to the end of the connection's send queue. */
static void answers_to_queue(struct conn *conn)
{
    struct store_server *s = conn->server;

    if (s->current != conn || s->answers_size == 0)
        return;
    if (send_queue_add(&conn->out, s->answers, s->answers_size) < 0)
        connection_fail(conn);
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
    answers_to_queue(conn);
    if (send_queue_add(&conn->out, data, bytes) < 0)
        connection_fail(conn);
    conn_run_later(conn);
}

static int take_reply(void *owner, const void *data, size_t bytes)
{
    conn_send(owner, data, bytes);
    return waiting(owner) > OUT_HIGH;
}

void conn_send_value(struct conn *conn, struct value *value)
{
    answers_to_queue(conn);
    if (!value || send_queue_add_value(&conn->out, value) < 0)
        connection_fail(conn);
    conn_run_later(conn);
}

static int connection_take_value(void *owner, struct value *value)
{
    conn_send_value(owner, value);
    return waiting(owner) > OUT_HIGH;
}

const struct reply_hooks conn_reply_hooks = { .reply = take_reply,
                                              .reply_value = connection_take_value };

static void wait_until_writable(struct conn *conn)
{
    conn->blocked = 1;
    event_add(&conn->writable, NULL);
}

/* Sends the replies that were collected for the current connection. */
static void send_answers(struct conn *conn)
{
    struct store_server *s = conn->server;
    ssize_t n = 0;

    if (s->answers_size > 0 && !conn->blocked)
        n = conn->channel
                ? secure_channel_write(conn->channel,
                                       &(struct iovec){ s->answers, s->answers_size }, 1)
                : send(conn->fd, s->answers, s->answers_size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        connection_fail(conn);
    else if (n < (ssize_t)s->answers_size) {
        if (send_queue_add(&conn->out, s->answers + (n > 0 ? n : 0),
                           s->answers_size - (size_t)(n > 0 ? n : 0))
            < 0)
            connection_fail(conn);
        conn_run_later(conn);
    }
    s->answers_size = 0;
}

/* ---- In --------------------------------------------------------------------- */

static void pause_reading(struct conn *conn)
{
    conn->paused = 1;
    event_del(&conn->readable);
}

/* Keeps bytes for a later turn.  Copies them to the backlog unless they are in it already.  Returns
 * -1 if out of memory. */
static int keep_backlog(struct conn *conn, const unsigned char *data, size_t bytes)
{
    unsigned char *backlog;

    if (conn->backlog && data >= conn->backlog && data <= conn->backlog + conn->backlog_size) {
        conn->backlog_at = (size_t)(data - conn->backlog);
        return 0;
    }
    if (bytes == 0)
        return 0;
    backlog = budget_alloc(conn->out.budget, bytes);
    if (!backlog)
        return -1;
    memcpy(backlog, data, bytes);
    conn->backlog = backlog;
    conn->backlog_at = 0;
    conn->backlog_size = bytes;
    return 0;
}

static void drop_backlog(struct conn *conn)
{
    budget_free(conn->out.budget, conn->backlog, conn->backlog_size);
    conn->backlog = NULL;
    conn->backlog_at = conn->backlog_size = 0;
}

/* Feeds bytes to the session.  Returns -1 if the connection must be closed.  *why is then the
 * reason to log; NULL if nothing is to be logged. */
static int feed_session(struct conn *conn, const unsigned char *data, size_t bytes,
                        const char **why)
{
    size_t used;

    switch (session_feed(conn->session, data, bytes, &used, why)) {
    case SESSION_BROKEN:
        return -1;
    case SESSION_BUSY:
        if (keep_backlog(conn, data + used, bytes - used) < 0) {
            *why = "the store has no memory left for its request (raise --store-memory)";
            return -1;
        }
        if (!conn->paused)
            pause_reading(conn);
        conn_run_later(conn);
        return 0;
    case SESSION_READY:
        break;
    }
    if (!conn->admitted && session_is_valid(conn->session))
        server_admit(conn); /* an admitted client may be silent for days */
    drop_backlog(conn);
    if (conn->paused) {
        conn->paused = 0;
        event_add(&conn->readable, NULL);
    }
    return 0;
}

/* Feeds the first bytes of a connection to its admission, and moves *data past the bytes that the
 * admission took.  Makes a session or an agent when the connection is admitted.  Returns -1 if the
 * connection must be closed. */
static int feed_admission(struct conn *conn, const unsigned char **data, size_t *bytes,
                          const char **why)
{
    struct admission_reply reply = { .size = 0 };
    size_t used = 0;
    enum admission_state state = admission_feed(conn, *data, *bytes, &used, &reply, why);

    *data += used;
    *bytes -= used;
    if (reply.size > 0)
        conn_send(conn, reply.bytes, reply.size);
    if (state == ADMISSION_QUERY) {
        uint32_t query;
        const int launchers = agents_query(conn, &query);

        state = admission_queried(conn, query, launchers, why);
    }
    if (state == ADMISSION_REFUSED)
        return -1;
    if (state == ADMISSION_PENDING) {
        if (admission_query(conn) && !conn->paused)
            pause_reading(conn);
        return keep_backlog(conn, *data, *bytes);
    }
    admission_destroy(conn->admission);
    conn->admission = NULL;
    if (state == ADMISSION_AGENT) {
        server_admit(conn);
        return agent_start(conn);
    }
    conn->session = session_create(conn->server->engine, conn);
    return conn->session ? 0 : -1;
}

static int connection_feed(struct conn *conn, const unsigned char *data, size_t bytes,
                           const char **why)
{
    *why = NULL;
    if (conn->admission && feed_admission(conn, &data, &bytes, why) < 0)
        return -1;
    if (conn->admission)
        return 0;
    if (conn->agent)
        return agent_feed(conn, data, bytes);
    return feed_session(conn, data, bytes, why);
}

/* Closes the connection after an error of the client, once the replies to the client's earlier
 * requests have been sent. */
static void close_after_answers(struct conn *conn, const char *why)
{
    if (why)
        server_log_refusal(conn->server, conn, why);
    server_unadmit(conn);
    conn->closing = 1;
    if (!conn->paused)
        pause_reading(conn);
    conn_run_later(conn);
}

static void take_bytes(struct conn *conn, const unsigned char *data, size_t bytes)
{
    struct store_server *s = conn->server;
    const char *why;
    int failed;

    s->reads++;
    s->current = conn;
    failed = connection_feed(conn, data, bytes, &why);
    send_answers(conn);
    s->current = NULL;
    if (failed)
        close_after_answers(conn, why);
}

/* Makes a channel if the connection's first byte shows that the client encrypts.  Returns -1 and
 * sets errno if the byte can't be read yet, the connection is gone or the channel can't be made. */
static int choose_channel(struct conn *conn)
{
    unsigned char first;
    const ssize_t n = recv(conn->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n < 1) {
        errno = n < 0 ? errno : EPIPE;
        return -1;
    }
    conn->is_silent = 0;
    if (first != CHANNEL_FIRST)
        return 0;
    conn->channel = secure_channel_create(conn->server->context, conn->fd, CHANNEL_SERVER);
    conn->handshakes = 1;
    errno = ENOMEM;
    return conn->channel ? 0 : -1;
}

/* Continues the channel's handshake.  Returns 0 when the channel is open.  Otherwise returns -1 and
 * sets errno, to EAGAIN if more bytes are needed. */
static int shake_hands(struct conn *conn, const char **why)
{
    const enum channel_step step = secure_channel_handshake(conn->channel);

    if (step == CHANNEL_FAILED && secure_channel_status(conn->channel) == CT_ERR_INVALID)
        *why = "it has another secret (CT_STORE_SECRET_FILE)";
    conn->handshakes = step != CHANNEL_OPEN;
    if (step == CHANNEL_OPEN)
        secure_channel_read_ahead(conn->channel);
    errno = step == CHANNEL_WAITS ? EAGAIN : EPROTO;
    return step == CHANNEL_OPEN ? 0 : -1;
}

static ssize_t connection_receive(struct conn *conn, void *data, size_t most, const char **why)
{
    if (conn->is_silent && choose_channel(conn) < 0)
        return -1;
    if (!conn->channel)
        return recv(conn->fd, data, most, MSG_DONTWAIT);
    if (conn->handshakes && shake_hands(conn, why) < 0)
        return -1;
    return secure_channel_read(conn->channel, data, most);
}

static int reads_more(const struct conn *conn)
{
    return conn->channel && !conn->paused && !conn->closing && !conn->handshakes
           && secure_channel_has_more(conn->channel);
}

static void connection_read_some(struct conn *conn)
{
    struct store_server *s = conn->server;
    const size_t most = conn->admission
                            ? ADMISSION_BYTES
                            : sizeof s->in; /* a pending connection must not use much memory */
    const char *why = NULL;
    const ssize_t n = connection_receive(conn, s->in, most, &why);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        conn->error = n < 0 ? errno : 0;
        conn_close(conn, why);
        return;
    }
    if (n > 0)
        take_bytes(conn, s->in, (size_t)n);
    if (reads_more(conn))
        conn_run_later(conn);
}

static void connection_on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct store_server *s = ((struct conn *)arg)->server;

    (void)fd;
    (void)what;
    connection_read_some(arg);
    server_work(s);
}

/* ---- Turns ------------------------------------------------------------------ */

/* Sends queued replies.  Returns -1 if it closed the connection, else 0. */
static int connection_flush(struct conn *conn)
{
    if (conn->out.first && !conn->blocked
        && send_queue_send(&conn->out, conn->channel, conn->fd) < 0) {
        if (errno == EAGAIN || errno == EINTR)
            wait_until_writable(conn);
        else {
            conn->broken = 1;
            conn->error = errno;
        }
    }
    if (!conn->broken && !(conn->closing && !conn->out.first))
        return 0;
    conn_close(conn, NULL);
    return -1;
}

static int may_resume(const struct conn *conn)
{
    return conn->paused && !conn->closing
           && (conn->session ? conn->out.bytes <= OUT_LOW : !admission_query(conn));
}

/* Continues the connection's request, with the bytes that were read but not handled, if any. */
static void feed_backlog(struct conn *conn)
{
    static const unsigned char nothing[1];

    if (conn->backlog)
        take_bytes(conn, conn->backlog + conn->backlog_at, conn->backlog_size - conn->backlog_at);
    else
        take_bytes(conn, nothing, 0);
}

static void conn_turn(struct conn *conn)
{
    list_unlink(&conn->run);
    if (connection_flush(conn) < 0)
        return;
    if (may_resume(conn))
        feed_backlog(conn);
    if (conn->out.first && !conn->blocked)
        conn_run_later(conn);
    if (reads_more(conn))
        connection_read_some(conn);
}

void server_work(struct store_server *s)
{
    static const struct timeval at_once = { 0, 0 };
    int64_t start = 0;
    int more;

    do {
        more = engine_work(s->engine);
        if (!list_is_empty(&s->running)) {
            conn_turn((struct conn *)((char *)s->running.next - offsetof(struct conn, run)));
            more = 1;
        }
        if (more && start == 0)
            start = clock_us();
    } while (more && clock_us() - start < WORK_US);
    if (more && !event_pending(&s->later, EV_TIMEOUT, NULL))
        event_add(&s->later,
                  &at_once); /* a timer, so that libevent checks the sockets before the next turn */
}

static void connection_on_writable(evutil_socket_t fd, short what, void *arg)
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

    conn->out.budget = engine_budget(s->engine);
    list_init(&conn->all);
    list_init(&conn->run);
    event_assign(&conn->readable, s->base, conn->fd, EV_READ | EV_PERSIST, connection_on_readable,
                 conn);
    event_assign(&conn->writable, s->base, conn->fd, EV_WRITE, connection_on_writable, conn);
    conn->accepted_at = clock_ms();
    conn->is_silent = s->context != NULL;
    conn->admission = admission_create();
    return conn->admission ? event_add(&conn->readable, NULL) : -1;
}

void conn_close(struct conn *conn, const char *why)
{
    if (why)
        server_log_refusal(conn->server, conn, why);
    conn_free(conn);
}

void conn_free(struct conn *conn)
{
    server_remove(conn);
    list_unlink(&conn->run);
    agent_free(conn);
    session_destroy(conn->session);
    admission_destroy(conn->admission);
    event_del(&conn->readable);
    event_del(&conn->writable);
    drop_backlog(conn);
    send_queue_clear(&conn->out);
    secure_channel_destroy(conn->channel);
    shutdown(conn->fd, SHUT_RDWR); /* a child forked just now may have a copy of the descriptor */
    descriptor_close(conn->fd);
    free(conn);
}
