/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.c - see http_server.h.
 *
 * evhttp takes every connection, and reports neither how many it has nor when one is closed.  So
 * after each new connection this file searches the process's descriptors for connections of the
 * server.  It shuts down a connection that has not sent a request in time, and evhttp closes it as
 * if the client had.  When all connections are in use, it also shuts down those that have been
 * silent for longest, since otherwise silent clients would keep the owner out.  Then the listener
 * rests for a moment, and connections wait in the kernel's queue. */
#include "launcher/util/http_server.h"

#include <dirent.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/util/clock.h"

#define SECONDS 10 /* until the head is there; then of a connection on which nothing moves */
#define REST_MS 50 /* of the listener, if there are too many connections */
#define NO_FD_S 1  /* or no descriptor is free */
#define HEAD_BYTES 8192
#define UNREAD_BYTES 65536 /* of what a client sends and evhttp does not read */

/* Both are ends at one address: a listener, and a connection that it accepted. */
static int is_same_end(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_un *unix_a = (const void *)a, *unix_b = (const void *)b;
    const struct sockaddr_in *v4_a = (const void *)a, *v4_b = (const void *)b;

    if (a->ss_family != b->ss_family)
        return 0;
    if (a->ss_family == AF_UNIX)
        return !strcmp(unix_a->sun_path, unix_b->sun_path);
    return v4_a->sin_port == v4_b->sin_port; /* where IPv6 has it, too */
}

static struct http_connection *connection_of(struct http_server *server, int fd)
{
    struct stat info = { 0 };

    if (fstat(fd, &info) < 0)
        return NULL;
    for (int i = 0; i < server->connections; i++)
        if (server->connection[i].socket == info.st_ino)
            return &server->connection[i];
    if (server->connections == 2 * HTTP_CONNECTIONS)
        return NULL;
    server->connection[server->connections] =
        (struct http_connection){ .socket = info.st_ino, .since_ms = clock_ms() };
    return &server->connection[server->connections++];
}

static void shut(struct http_connection *connection)
{
    connection->is_shut = 1;
    shutdown(connection->fd, SHUT_RDWR);
}

static void take_stock_of(struct http_server *server, int fd)
{
    struct http_connection *const connection = connection_of(server, fd);

    if (!connection) {
        shutdown(fd, SHUT_RDWR);
        return;
    }
    connection->fd = fd;
    connection->is_there = 1;
    if (!connection->has_asked && clock_ms() - connection->since_ms >= SECONDS * 1000)
        shut(connection);
}

/* The connections are in the order in which they came. */
static void make_room(struct http_server *server)
{
    int left = HTTP_SHUT;

    for (int i = 0; i < server->connections && left > 0; i++)
        if (!server->connection[i].has_asked && !server->connection[i].is_shut) {
            shut(&server->connection[i]);
            left--;
        }
}

/* How many connections there are. */
static int take_stock(struct http_server *server)
{
    const int listener = evconnlistener_get_fd(server->listener);
    struct sockaddr_storage own = { 0 }, end;
    socklen_t size = sizeof own;
    DIR *const folder = opendir("/proc/self/fd");
    int left = 0;

    if (!folder || getsockname(listener, (struct sockaddr *)&own, &size) < 0) {
        if (folder)
            closedir(folder);
        return HTTP_CONNECTIONS; /* no descriptor is left */
    }
    for (const struct dirent *entry; (entry = readdir(folder));) {
        const int fd = atoi(entry->d_name);

        end = (struct sockaddr_storage){ 0 };
        size = sizeof end;
        if (fd > 0 && fd != listener && getsockname(fd, (struct sockaddr *)&end, &size) == 0
            && is_same_end(&own, &end))
            take_stock_of(server, fd);
    }
    closedir(folder);
    for (int i = 0; i < server->connections; i++)
        if (server->connection[i].is_there) {
            server->connection[left] = server->connection[i];
            server->connection[left++].is_there = 0;
        }
    server->connections = left;
    if (left >= HTTP_CONNECTIONS)
        make_room(server);
    return left;
}

static void rest(struct http_server *server, int ms)
{
    evconnlistener_disable(server->listener);
    event_add(&server->again, &(struct timeval){ ms / 1000, ms % 1000 * 1000 });
}

static void take_again(evutil_socket_t fd, short what, void *arg)
{
    struct http_server *server = arg;

    (void)fd;
    (void)what;
    if (take_stock(server) >= HTTP_CONNECTIONS)
        rest(server, REST_MS);
    else
        evconnlistener_enable(server->listener);
}

/* Without this libevent would try again at once, and complain, for ever. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
    (void)listener;
    rest(arg, NO_FD_S * 1000);
}

/* evhttp asks for it once for each connection that it has accepted. */
static struct bufferevent *make_bufferevent(struct event_base *base, void *arg)
{
    struct http_server *server = arg;
    struct bufferevent *const connection = bufferevent_socket_new(base, -1, 0);

    if (take_stock(server) >= HTTP_CONNECTIONS)
        rest(server, REST_MS);
    /* evhttp goes on reading while a request is being answered, and drops nothing of it. */
    if (connection)
        bufferevent_setwatermark(connection, EV_READ, 0, UNREAD_BYTES);
    return connection;
}

int http_request_fd(struct evhttp_request *request)
{
    return bufferevent_getfd(
        evhttp_connection_get_bufferevent(evhttp_request_get_connection(request)));
}

/* evhttp would say 501 of a method that it knows and may not pass on. */
static void on_request(struct evhttp_request *request, void *arg)
{
    struct http_server *server = arg;
    struct http_connection *connection = connection_of(server, http_request_fd(request));
    const char why[] = "GET or HEAD\n";

    if (connection)
        connection->has_asked = 1;
    if (evhttp_request_get_command(request) & (EVHTTP_REQ_GET | EVHTTP_REQ_HEAD)) {
        server->hooks->answer(request, server->arg);
        return;
    }
    evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET, HEAD");
    http_answer(request, HTTP_BADMETHOD, "text/plain", why, strlen(why));
}

int http_server_open(struct http_server *server, struct event_base *base, int listener,
                     const struct http_hooks *hooks, void *arg)
{
    struct evhttp_bound_socket *bound;

    *server = (struct http_server){ .http = evhttp_new(base), .hooks = hooks, .arg = arg };
    evutil_make_socket_nonblocking(listener);
    bound = server->http ? evhttp_accept_socket_with_handle(server->http, listener) : NULL;
    if (!bound) {
        http_server_close(server);
        return -1;
    }
    server->listener = evhttp_bound_socket_get_listener(bound);
    evconnlistener_set_error_cb(server->listener, on_accept_error);
    evtimer_assign(&server->again, base, take_again, server);
    evhttp_set_allowed_methods(server->http, 0xffff); /* on_request() refuses */
    evhttp_set_max_headers_size(server->http, HEAD_BYTES);
    evhttp_set_max_body_size(server->http, HEAD_BYTES);
    evhttp_set_timeout(server->http, SECONDS);
    evhttp_set_bevcb(server->http, make_bufferevent, server);
    evhttp_set_gencb(server->http, on_request, server);
    return 0;
}

void http_server_close(struct http_server *server)
{
    if (!server->http)
        return;
    if (server->listener)
        event_del(&server->again);
    evhttp_free(server->http); /* the socket and the connections, too */
    *server = (struct http_server){ .http = NULL };
}

void http_answer(struct evhttp_request *request, int code, const char *type, const char *body,
                 size_t size)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    struct evbuffer *buffer = evbuffer_new();
    char length[24];

    evhttp_add_header(headers, "Content-Type", type);
    evhttp_add_header(headers, "Cache-Control", "no-store");
    if (code >= 400) /* a client that is refused keeps no place */
        evhttp_add_header(headers, "Connection", "close");
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    evutil_snprintf(length, sizeof length, "%zu", size);
    evhttp_add_header(headers, "Content-Length", length);
    if (buffer && evhttp_request_get_command(request) != EVHTTP_REQ_HEAD)
        evbuffer_add(buffer, body, size);
    evhttp_send_reply(request, code, NULL, buffer);
    if (buffer)
        evbuffer_free(buffer);
}
