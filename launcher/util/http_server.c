/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.c - see http_server.h.
 *
 * evhttp takes every connection.  It has no limit of its own, so before each one the lowest free
 * descriptor is looked at: when it has risen by DESCRIPTORS since the server was opened, the
 * listener rests for a while, and what waits in the kernel's queue is taken later. */
#include "launcher/util/http_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define DESCRIPTORS 128
#define SECONDS 10 /* of a connection on which nothing moves */
#define HEAD_BYTES 8192

static int lowest_free_descriptor(int near)
{
    const int fd = fcntl(near, F_DUPFD_CLOEXEC, 0);

    if (fd >= 0)
        close(fd);
    return fd; /* -1: there is none */
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
    const int lowest = lowest_free_descriptor(evconnlistener_get_fd(server->listener));

    if (lowest < 0 || lowest > server->most) {
        evconnlistener_disable(server->listener);
        event_add(&server->again, &(struct timeval){ 1, 0 });
    }
    return bufferevent_socket_new(base, -1, 0);
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
        close(listener);
        http_server_close(server);
        return -1;
    }
    server->listener = evhttp_bound_socket_get_listener(bound);
    server->most = lowest_free_descriptor(listener) + DESCRIPTORS;
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
