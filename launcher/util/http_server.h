/* SPDX-License-Identifier: Apache-2.0 */
/* http_server.h - HTTP/1.1 on one socket: GET and HEAD, one request for each connection.
 *
 * Its limits protect the descriptors that workers need, and the turns of other connections: 128
 * connections, or an eighth of the descriptors that ctrun may have; 8 KiB of head; 10 seconds until
 * the head is there; 64 KiB in total from a client; 10 seconds in which a client takes nothing of
 * an answer.  If all connections are in use, a new one replaces the oldest one that is not waiting
 * for an answer or taking it. */
#ifndef LAUNCHER_UTIL_HTTP_SERVER_H
#define LAUNCHER_UTIL_HTTP_SERVER_H

#include <event2/event_struct.h>

#include "runtime/util/text.h"

#define HTTP_CONNECTIONS 128
#define HTTP_HEAD 8192

struct http_connection {
    struct http_server *server;
    enum http_state {
        HTTP_READS,    /* the head is being read */
        HTTP_WAITS,    /* waits for http_answer() or http_stream() */
        HTTP_STREAMS,  /* is open for http_send() */
        HTTP_ANSWERED, /* the answer is being sent */
        HTTP_SHUT      /* all is sent, and the client closes next */
    } state;
    int fd;
    int kind; /* set by the caller: what the client waits for */
    struct event readable, writable;
    struct event late; /* the client has not sent its head, or not closed, in time */
    char head[HTTP_HEAD];
    size_t got; /* bytes from the client */
    /* These point into head; NULL: the request has no such part. */
    char *method, *path, *query, *host, *authorization;
    int is_head; /* the method is HEAD: the answer has no body */
    struct text answer;
    size_t sent; /* bytes of the answer that are sent */
};

struct http_server {
    struct event_base *base; /* NULL: the server is not open */
    struct event incoming;
    void (*on_request)(struct http_connection *connection, void *arg);
    void *arg;
    struct http_connection *connection[HTTP_CONNECTIONS]; /* oldest first */
    int connections, most;
};

/* Takes over the listening socket.  on_request() gets each GET and HEAD, and may answer it at once
 * or later. */
void http_server_open(struct http_server *server, struct event_base *base, int listener,
                      void (*on_request)(struct http_connection *, void *), void *arg);
/* Closes the server.  All clients together have 100 ms to take what is not sent yet.  May be called
 * twice. */
void http_server_close(struct http_server *server);

/* Sends a whole answer.  status: "200 OK"; headers: further headers, each with its line end. */
void http_answer(struct http_connection *connection, const char *status, const char *type,
                 const char *headers, const char *body, size_t size);
void http_refuse(struct http_connection *connection, const char *status, const char *why);

/* Sends the head of an answer that http_send() continues until the server is closed.  A HEAD
 * request is then answered. */
void http_stream(struct http_connection *connection, const char *type);
void http_send(struct http_connection *connection, const struct text *bytes);

#endif
