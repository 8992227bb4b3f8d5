/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.h - libevent's HTTP server on one socket, with limits, so that strangers take neither
 * the descriptors that workers need nor the turns of others: GET and HEAD, a head of 8 KiB, 10
 * seconds until it is there, and 128 connections; those without a request make room for others. */
#ifndef LAUNCHER_UTIL_HTTP_SERVER_H
#define LAUNCHER_UTIL_HTTP_SERVER_H

#include <event2/event_struct.h>
#include <event2/http.h>
#include <stdint.h>
#include <sys/types.h>

#define HTTP_CONNECTIONS 128
#define HTTP_SHUT 32 /* connections that are shut down at a time to make room */

struct http_hooks {
    /* Owes each GET and HEAD an answer, at once or later. */
    void (*answer)(struct evhttp_request *request, void *arg);
};

struct http_server {
    struct evhttp *http; /* NULL: it is not open */
    struct evconnlistener *listener;
    struct event again; /* connections are taken again */
    const struct http_hooks *hooks;
    void *arg;
    /* Known by the inode of its socket, since evhttp does not say when it closes a descriptor. */
    struct http_connection {
        ino_t socket;
        int64_t since_ms;
        int fd; /* at the last search of the descriptors */
        int has_asked, is_there, is_shut;
    } connection[2 * HTTP_CONNECTIONS];
    int connections;
};

/* Takes over the listening socket.  -1: out of memory. */
int http_server_open(struct http_server *server, struct event_base *base, int listener,
                     const struct http_hooks *hooks, void *arg);
void http_server_close(struct http_server *server); /* closed already is fine */

/* A whole answer.  HEAD gets its head alone. */
void http_answer(struct evhttp_request *request, int code, const char *type, const char *body,
                 size_t size);

int http_request_fd(struct evhttp_request *request);

#endif
