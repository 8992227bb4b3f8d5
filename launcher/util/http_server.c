/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.c - see http_server.h.
 *
 * evhttp takes every connection and tells nobody how many it has.  So at each one the descriptors
 * of this process are looked through for those of the server: when there are CONNECTIONS, the
 * listener rests for a moment, and what waits in the kernel's queue is taken later. */
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
#include <sys/un.h>
#include <unistd.h>

#define CONNECTIONS 128
#define SECONDS 10 /* of a connection on which nothing moves */
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

static int count_connections(int listener)
{
    struct sockaddr_storage own = { 0 }, end;
    socklen_t size = sizeof own;
    DIR *const folder = opendir("/proc/self/fd");
    int count = 0;

    if (!folder || getsockname(listener, (struct sockaddr *)&own, &size) < 0)
        count = CONNECTIONS; /* there may be no descriptor left */
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        const int fd = atoi(entry->d_name);

        end = (struct sockaddr_storage){ 0 };
        size = sizeof end;
        count += fd > 0 && fd != listener && getsockname(fd, (struct sockaddr *)&end, &size) == 0
                 && is_same_end(&own, &end);
    }
    if (folder)
        closedir(folder);
    return count;
}

static void take_again(evutil_socket_t fd, short what, void *arg)
{
    struct http_server *server = arg;

    (void)fd;
    (void)what;
    evconnlistener_enable(server->listener);
}

/* evhttp asks for it once for each connection that it has accepted. */
static struct bufferevent *make_bufferevent(struct event_base *base, void *arg)
{
    struct http_server *server = arg;
    struct bufferevent *const connection = bufferevent_socket_new(base, -1, 0);

    if (count_connections(evconnlistener_get_fd(server->listener)) >= CONNECTIONS) {
        evconnlistener_disable(server->listener);
        event_add(&server->again, &(struct timeval){ 1, 0 });
    }
    /* evhttp goes on reading while a request is being answered, and drops nothing of it. */
    if (connection)
        bufferevent_setwatermark(connection, EV_READ, 0, UNREAD_BYTES);
    return connection;
}

/* evhttp would say 501 of a method that it knows and may not pass on. */
static void on_request(struct evhttp_request *request, void *arg)
{
    const struct http_server *server = arg;
    const char why[] = "GET or HEAD\n";

    if (evhttp_request_get_command(request) & (EVHTTP_REQ_GET | EVHTTP_REQ_HEAD)) {
        server->answer(request, server->arg);
        return;
    }
    evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET, HEAD");
    http_answer(request, HTTP_BADMETHOD, "text/plain", why, strlen(why));
}

int http_server_open(struct http_server *server, struct event_base *base, int listener,
                     void (*answer)(struct evhttp_request *request, void *arg), void *arg)
{
    struct evhttp_bound_socket *bound;

    *server = (struct http_server){ .http = evhttp_new(base), .answer = answer, .arg = arg };
    evutil_make_socket_nonblocking(listener);
    bound = server->http ? evhttp_accept_socket_with_handle(server->http, listener) : NULL;
    if (!bound) {
        http_server_close(server);
        return -1;
    }
    server->listener = evhttp_bound_socket_get_listener(bound);
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
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    evutil_snprintf(length, sizeof length, "%zu", size);
    evhttp_add_header(headers, "Content-Length", length);
    if (buffer && evhttp_request_get_command(request) != EVHTTP_REQ_HEAD)
        evbuffer_add(buffer, body, size);
    evhttp_send_reply(request, code, NULL, buffer);
    if (buffer)
        evbuffer_free(buffer);
}
