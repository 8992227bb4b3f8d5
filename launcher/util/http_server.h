/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.h - serves HTTP/1.1 on a socket.  Each connection has one request, GET or HEAD.
 *
 * Limits protect the descriptors that workers need, and let other connections proceed.  There are
 * at most 128 connections, or an eighth of the descriptors that ctrun may have, whichever is less.
 * A head has at most 8 KiB, and must arrive within 10 seconds.  A client may send at most 64 KiB in
 * total.  A client that accepts no byte of an answer for 10 seconds is disconnected.  If all
 * connections are in use, a new connection replaces the oldest connection that neither waits for an
 * answer nor receives an answer. */
#ifndef LAUNCHER_UTIL_HTTP_SERVER_H
#define LAUNCHER_UTIL_HTTP_SERVER_H

#include <event2/event_struct.h>

#include "runtime/util/text.h"

#define HTTP_CONNECTIONS 128
#define HTTP_HEAD 8192

struct http_connection {
    struct http_server *server;
    enum http_state {
        HTTP_READS,    /* the server reads the head */
        HTTP_WAITS,    /* the server waits for the caller's http_answer() or http_stream() */
        HTTP_STREAMS,  /* the caller may use http_send() */
        HTTP_ANSWERED, /* the server sends the answer */
        HTTP_SHUT      /* the answer is sent, and the client must close the connection next */
    } state;
    int fd;
    int kind; /* set by the caller: what the client waits for */
    struct event readable, writable;
    /* timer that fires if the client sends its head or closes the connection too late */
    struct event late;
    char head[HTTP_HEAD];
    size_t got; /* number of bytes that the client has sent */
    /* These point into head; NULL if the request has no such part. */
    char *method, *path, *query, *host, *authorization;
    int is_head; /* 1 if the method is HEAD, so that the answer has no body */
    struct text answer;
    size_t sent; /* number of bytes of the answer that are sent */
};

struct http_server {
    struct event_base *base; /* NULL if the server is not open */
    struct event incoming;
    void (*on_request)(struct http_connection *connection, void *arg);
    void *arg;
    struct http_connection *connection[HTTP_CONNECTIONS]; /* the oldest connection first */
    int connections, most;
};

/* Opens a server on the listening socket, which the server will close.  on_request() is called with
 * each GET and HEAD, and may answer it at once or later. */
void http_server_open(struct http_server *server, struct event_base *base, int listener,
                      void (*on_request)(struct http_connection *, void *), void *arg);
/* Closes the server.  All clients together have 100 ms to receive the rest of their answers.  May
 * be called twice. */
void http_server_close(struct http_server *server);

/* Sends a whole answer.  `status` is a text such as "200 OK".  `headers` are additional headers,
 * each of which ends with CR LF. */
void http_answer(struct http_connection *connection, const char *status, const char *type,
                 const char *headers, const char *body, size_t size);
void http_refuse(struct http_connection *connection, const char *status, const char *why);

/* Sends the head of an answer that http_send() continues until the server is closed.  For a HEAD
 * request, the head is the whole answer. */
void http_stream(struct http_connection *connection, const char *type);
void http_send(struct http_connection *connection, const struct text *bytes);

#endif
