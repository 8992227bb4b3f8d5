/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.h - libevent's HTTP server on one socket, with limits: GET and HEAD, a head of 8 KiB,
 * 10 seconds for what a client has to say or to take, and no more than some hundred descriptors,
 * so that strangers who connect take none that workers need. */
#ifndef LAUNCHER_UTIL_HTTP_SERVER_H
#define LAUNCHER_UTIL_HTTP_SERVER_H

#include <event2/event_struct.h>
#include <event2/http.h>

struct http_server {
    struct evhttp *http; /* NULL: it is not open */
    struct evconnlistener *listener;
    int most;           /* no descriptor above it, while connections are taken */
    struct event again; /* connections are taken again */
    void (*answer)(struct evhttp_request *request, void *arg);
    void *arg;
};

/* Takes over the listening socket, also if it fails.  answer() owes each GET and HEAD an answer, at
 * once or later.  -1: out of memory. */
int http_server_open(struct http_server *server, struct event_base *base, int listener,
                     void (*answer)(struct evhttp_request *request, void *arg), void *arg);
void http_server_close(struct http_server *server); /* closed already is fine */

/* A whole answer.  HEAD gets its head alone. */
void http_answer(struct evhttp_request *request, int code, const char *type, const char *body,
                 size_t size);

#endif
