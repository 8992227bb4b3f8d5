/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.h - HTTP/1.1 on one socket: GET and HEAD, one request for each connection.
 *
 * Its limits keep strangers from the descriptors that workers need, and from the turns of others:
 * 128 connections, or an eighth of the descriptors that ctrun may have, 8 KiB of head, 10 seconds
 * until the head is there, 64 KiB from a client in all, 10 seconds in which a client takes nothing
 * of an answer.  If all connections are in use, a new one takes the place of the one that has been
 * silent for longest. */
#ifndef LAUNCHER_UTIL_HTTP_SERVER_H
#define LAUNCHER_UTIL_HTTP_SERVER_H

#include <event2/event_struct.h>

#include "runtime/util/text.h"

#define HTTP_CONNECTIONS 128
#define HTTP_HEAD 8192

struct http_connection {
    struct http_server *server;
    enum http_state {
        HTTP_READS,    /* the head */
        HTTP_WAITS,    /* for http_answer() or http_stream() */
        HTTP_STREAMS,  /* takes http_send() */
        HTTP_ANSWERED, /* its answer is being sent */
        HTTP_SHUT      /* all is sent; the client closes */
    } state;
    int fd;
    int kind; /* the caller's: what it waits for */
    struct event readable, writable;
    struct event late; /* the client had to send its head, or to close, by now */
    char head[HTTP_HEAD];
    size_t got; /* bytes from the client */
    /* These point into head; NULL: it has none. */
    char *method, *path, *query, *host, *authorization;
    int is_head; /* the method HEAD: its answer has no body */
    struct text answer;
    size_t sent; /* of it */
};

struct http_server {
    struct event_base *base; /* NULL: it is not open */
    struct event incoming;
    void (*on_request)(struct http_connection *connection, void *arg);
    void *arg;
    struct http_connection *connection[HTTP_CONNECTIONS]; /* in the order in which they came */
    int connections, most;
};

/* Takes over the listening socket.  on_request() gets each GET and HEAD, and answers it at once or
 * later. */
void http_server_open(struct http_server *server, struct event_base *base, int listener,
                      void (*on_request)(struct http_connection *, void *), void *arg);
/* Clients have 100 ms in all to take what is not sent yet.  Closed already is fine. */
void http_server_close(struct http_server *server);

/* A whole answer.  status: "200 OK"; headers: more of them, each with its end. */
void http_answer(struct http_connection *connection, const char *status, const char *type,
                 const char *headers, const char *body, size_t size);
void http_refuse(struct http_connection *connection, const char *status, const char *why);

/* The head of an answer that http_send() continues until the server is closed; of HEAD all of it.
 */
void http_stream(struct http_connection *connection, const char *type);
void http_send(struct http_connection *connection, const struct text *bytes);

#endif
