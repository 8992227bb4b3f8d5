/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.c - implements the HTTP server that http_server.h describes.
 *
 * Each iteration of the event loop accepts one connection.  The server reads a head in any number
 * of pieces, and passes on the request.  It reads and drops whatever the client sends after the
 * head, such as a body or a second request.  After the answer the server shuts down its side, and
 * reads until the client closes.  If the server closed a connection with unread bytes, the kernel
 * would reset the connection, and the client would lose the end of its answer. */
#include "launcher/util/http_server.h"

#include <ctype.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/util.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/util/clock.h"

#define REQUEST_BYTES 65536 /* most bytes that a client may send in total */
#define SHARE 8             /* at most 1/SHARE of the descriptors may be connections */
#define FLUSH_MS 100

static const struct timeval patience = { 10, 0 };
static const struct timeval rest = { 1, 0 }; /* pause after a failed accept4() */

/* ---- Answers ------------------------------------------------------------------------- */

static void http_begin(struct http_connection *connection, enum http_state state,
                       const char *status, const char *type, const char *headers)
{
    text_print(&connection->answer,
               "HTTP/1.1 %s\r\nContent-Type: %s\r\nCache-Control: no-store\r\n"
               "X-Content-Type-Options: nosniff\r\nConnection: close\r\n%s",
               status, type, headers);
    connection->state = state;
    event_add(&connection->writable, &patience);
}

void http_answer(struct http_connection *connection, const char *status, const char *type,
                 const char *headers, const char *body, size_t size)
{
    http_begin(connection, HTTP_ANSWERED, status, type, headers);
    text_print(&connection->answer, "Content-Length: %zu\r\n\r\n", size);
    if (!connection->is_head)
        text_add(&connection->answer, body, size);
}

void http_refuse(struct http_connection *connection, const char *status, const char *why)
{
    http_answer(connection, status, "text/plain", "", why, strlen(why));
}

void http_stream(struct http_connection *connection, const char *type)
{
    http_begin(connection, connection->is_head ? HTTP_ANSWERED : HTTP_STREAMS, "200 OK", type,
               "\r\n");
}

void http_send(struct http_connection *connection, const struct text *bytes)
{
    text_add(&connection->answer, bytes->data, bytes->used);
    event_add(&connection->writable, &patience);
}

/* ---- Heads --------------------------------------------------------------------------- */

static int http_parse_request(struct http_connection *connection, char *line)
{
    char *const method = strsep(&line, " ");
    char *target = strsep(&line, " ");

    if (!*method || !target || *target != '/' || !line || strncmp(line, "HTTP/1.", 7) != 0
        || !isdigit((unsigned char)line[7]) || line[8])
        return -1;
    connection->method = method;
    connection->is_head = !strcmp(method, "HEAD");
    connection->path = strsep(&target, "?");
    connection->query = target;
    return 0;
}

/* Returns the header's value if the line is that header; NULL if the line is another header. */
static char *http_value(char *line, const char *header)
{
    const size_t size = strlen(header);

    return !strncasecmp(line, header, size) ? line + size + strspn(line + size, " \t") : NULL;
}

/* Parses the head in place.  Returns 0, or -1 if the head is not a request. */
static int http_parse(struct http_connection *connection, char *end)
{
    char *at = connection->head, *line, *value;

    *end = '\0';
    if (at + strlen(at) != end || http_parse_request(connection, strsep(&at, "\r\n")) < 0)
        return -1;
    while ((line = strsep(&at, "\r\n"))) { /* line is "" between CR and LF */
        if (*line && line[strcspn(line, ": \t")] != ':')
            return -1;
        if ((value = http_value(line, "Host:")))
            connection->host = value;
        else if ((value = http_value(line, "Authorization:")))
            connection->authorization = value;
    }
    return 0;
}

static void http_take_head(struct http_connection *connection)
{
    struct http_server *const server = connection->server;
    char *const end = memmem(connection->head, connection->got, "\r\n\r\n", 4);
    const char why[] = "GET or HEAD\n";

    if (!end && connection->got < HTTP_HEAD)
        return;
    connection->state = HTTP_WAITS;
    event_del(&connection->late);
    if (!end)
        http_refuse(connection, "431 Request Header Fields Too Large",
                    "a request has at most 8 KiB of headers\n");
    else if (http_parse(connection, end) < 0)
        http_refuse(connection, "400 Bad Request", "this is not a request of HTTP/1.1\n");
    else if (!connection->is_head && strcmp(connection->method, "GET") != 0)
        http_answer(connection, "405 Method Not Allowed", "text/plain", "Allow: GET, HEAD\r\n", why,
                    strlen(why));
    else
        server->on_request(connection, server->arg);
}

/* ---- Connections --------------------------------------------------------------------- */

static void http_free(struct http_connection *connection)
{
    struct http_server *const server = connection->server;
    int at = 0;

    while (server->connection[at] != connection)
        at++;
    server->connections--;
    memmove(&server->connection[at], &server->connection[at + 1],
            (size_t)(server->connections - at) * sizeof connection);
    event_del(&connection->readable);
    event_del(&connection->writable);
    event_del(&connection->late);
    close(connection->fd);
    free(connection->answer.data);
    free(connection);
}

/* Reads from the client.  Returns 0, or -1 if the connection is over.  http_write() returns the
 * same. */
static int http_read(struct http_connection *connection)
{
    const int reads = connection->state == HTTP_READS;
    char dropped[4096];
    const ssize_t got = reads ? recv(connection->fd, connection->head + connection->got,
                                     HTTP_HEAD - connection->got, 0)
                              : recv(connection->fd, dropped, sizeof dropped, 0);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (got == 0) /* after its request, a client may shut down only its side */
        return connection->state == HTTP_WAITS || connection->state == HTTP_ANSWERED
                   ? event_del(&connection->readable)
                   : -1;
    connection->got += (size_t)got;
    if (reads)
        http_take_head(connection);
    return connection->got <= REQUEST_BYTES ? 0 : -1;
}

static int http_write(struct http_connection *connection)
{
    struct text *const answer = &connection->answer;
    const ssize_t sent = send(connection->fd, answer->data + connection->sent,
                              answer->used - connection->sent, MSG_NOSIGNAL);

    if (sent < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    connection->sent += (size_t)sent;
    if (connection->sent < answer->used)
        return 0;
    connection->sent = answer->used = 0;
    event_del(&connection->writable);
    if (connection->state == HTTP_ANSWERED) {
        connection->state = HTTP_SHUT;
        shutdown(connection->fd, SHUT_WR);
        event_add(&connection->readable, NULL);
        event_add(&connection->late, &patience);
    }
    return 0;
}

static void http_on_event(evutil_socket_t fd, short what, void *arg)
{
    struct http_connection *const connection = arg;

    (void)fd;
    if (what & EV_TIMEOUT || (what & EV_READ && http_read(connection) < 0)
        || (what & EV_WRITE && http_write(connection) < 0))
        http_free(connection);
}

/* Closes the oldest connection that neither waits for an answer nor receives an answer, if any, to
 * make room for a new connection. */
static void http_make_room(struct http_server *server)
{
    for (int i = 0; i < server->connections; i++)
        if (server->connection[i]->state == HTTP_READS
            || server->connection[i]->state == HTTP_SHUT) {
            http_free(server->connection[i]);
            return;
        }
}

static void http_add(struct http_server *server, int fd)
{
    struct http_connection *connection = NULL;

    if (server->connections == server->most)
        http_make_room(server);
    if (server->connections < server->most)
        connection = calloc(1, sizeof *connection);
    if (!connection) {
        close(fd);
        return;
    }
    connection->server = server;
    connection->fd = fd;
    event_assign(&connection->readable, server->base, fd, EV_READ | EV_PERSIST, http_on_event,
                 connection);
    event_assign(&connection->writable, server->base, fd, EV_WRITE | EV_PERSIST, http_on_event,
                 connection);
    evtimer_assign(&connection->late, server->base, http_on_event, connection);
    event_add(&connection->readable, NULL);
    event_add(&connection->late, &patience);
    server->connection[server->connections++] = connection;
}

/* Accepts one connection, then waits for the next connection.  After a failure, pauses before it
 * accepts again. */
static void http_on_incoming(evutil_socket_t listener, short what, void *arg)
{
    struct http_server *const server = arg;
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    const int rests = fd < 0 && errno != EAGAIN;

    (void)what;
    event_assign(&server->incoming, server->base, listener, rests ? 0 : EV_READ, http_on_incoming,
                 server);
    event_add(&server->incoming, rests ? &rest : NULL);
    if (fd >= 0)
        http_add(server, fd);
}

void http_server_open(struct http_server *server, struct event_base *base, int listener,
                      void (*on_request)(struct http_connection *, void *), void *arg)
{
    struct rlimit descriptors = { 0 };

    *server = (struct http_server){ .base = base, .on_request = on_request, .arg = arg };
    getrlimit(RLIMIT_NOFILE, &descriptors);
    server->most = descriptors.rlim_cur / SHARE < HTTP_CONNECTIONS
                       ? (int)(descriptors.rlim_cur / SHARE)
                       : HTTP_CONNECTIONS;
    evutil_make_socket_nonblocking(listener);
    http_on_incoming(listener, EV_READ, server);
}

/* Sends the rest of the answers without the event loop, which may have ended. */
static void http_flush(struct http_server *server)
{
    const int64_t end = clock_ms() + FLUSH_MS;
    struct pollfd unsent[HTTP_CONNECTIONS];
    nfds_t count;
    int left_ms;

    do {
        count = 0;
        /* backwards, since http_free() moves later connections */
        for (int i = server->connections - 1; i >= 0; i--) {
            struct http_connection *const connection = server->connection[i];

            if (connection->answer.used == 0)
                continue;
            if (http_write(connection) < 0)
                http_free(connection);
            else if (connection->answer.used > 0)
                unsent[count++] = (struct pollfd){ connection->fd, POLLOUT, 0 };
        }
        left_ms = time_left_ms(end, FLUSH_MS);
    } while (count > 0 && left_ms > 0 && poll(unsent, count, left_ms) > 0);
}

void http_server_close(struct http_server *server)
{
    if (!server->base)
        return;
    event_del(&server->incoming);
    close(event_get_fd(&server->incoming));
    http_flush(server);
    while (server->connections > 0)
        http_free(server->connection[0]);
    server->base = NULL;
}
