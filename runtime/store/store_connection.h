/* SPDX-License-Identifier: Apache-2.0 */
/* store_connection.h - one connection to a store server: a request is put together and sent at
 * once, and its answer is read within the store's timeout.
 *
 * An answer has no header, so a client that missed part of one can't find the next one.  Any
 * failure within a request or answer therefore breaks the connection, and each later request fails
 * with CT_ERR_PEER and the same cause.  The caller locks. */
#ifndef RUNTIME_STORE_STORE_CONNECTION_H
#define RUNTIME_STORE_STORE_CONNECTION_H

#include "runtime/store/engine/request_parser.h"
#include "runtime/util/error.h"

struct control; /* control_page.h */
struct secure_channel;

struct store_connection {
    int fd;
    struct secure_channel *channel; /* NULL: not encrypted */
    int timeout_ms;                 /* of each send and each answer; -1: for ever */
    char where[300];

    /* The caller's operation, for error messages. */
    const char *call;
    const struct bytes *keys; /* valid during the call */
    int count;

    enum store_command command; /* the request that is being put together or answered */
    unsigned char *out;
    size_t size, room;
    int out_of_memory;

    unsigned char in[4096]; /* bytes that came and were not read yet */
    size_t taken, filled;

    int64_t answered; /* when the last answer came */
    int unanswered;   /* requests without an answer (set and the like) sent since then */
    int64_t broken_at;
    char cause[400]; /* "": not broken */

    /* A death that the control page notes ends a wait.  NULL: there is no page. */
    struct control *control;
    int alarm;      /* control_alarm() */
    uint32_t known; /* deaths that were handled before */
    int any;        /* also the end of a worker that exited with 0 */
};

/* Takes over fd and its channel; NULL: it has none. */
void store_connection_open(struct store_connection *connection, int fd,
                           struct secure_channel *channel, const char *where, int timeout_ms);
void store_connection_close(struct store_connection *connection);

/* A request: the caller's name for it, then its parts.  Several commands may be sent together. */
void store_connection_call(struct store_connection *connection, const char *call,
                           const struct bytes *keys, int count);
void store_connection_command(struct store_connection *connection, enum store_command command);
void store_connection_put(struct store_connection *connection, const void *data, size_t bytes);
void store_connection_put_blob(struct store_connection *connection, struct bytes blob);
void store_connection_put_key(struct store_connection *connection,
                              struct bytes key); /* "/" + key */
void store_connection_put_keys(struct store_connection *connection, const struct bytes *keys,
                               int count);

ct_status store_connection_send(struct store_connection *connection);
ct_status
store_connection_post(struct store_connection *connection); /* sends a request that has no answer */
ct_status store_connection_ask(struct store_connection *connection, void *answer, size_t bytes);

/* 1: something came or the connection broke; 0: the deadline passed. */
int store_connection_ready(const struct store_connection *connection, int64_t deadline);
ct_status store_connection_get(struct store_connection *connection, void *data, size_t bytes);
/* malloc'ed, with a 0 behind; nothing is set on a failure. */
ct_status store_connection_get_blob(struct store_connection *connection, void **value,
                                    size_t *bytes);

/* One round trip: absent[i] is 0 if keys[i] is there. */
ct_status store_connection_check_each(struct store_connection *connection, const struct bytes *keys,
                                      int count, uint8_t *absent);
/* Waits until all keys are there.  CT_ERR_TIMEOUT names the missing ones. */
ct_status store_connection_wait(struct store_connection *connection, const struct bytes *keys,
                                int count, int64_t deadline);

/* See store_watch_deaths() and store_check_deaths(). */
void store_connection_watch_deaths(struct store_connection *connection, struct control *control,
                                   uint32_t known, int any);
ct_status store_connection_check_deaths(struct store_connection *connection);
/* Until fd is readable, or a death is noted; connection NULL: deaths are not looked for. */
ct_status store_connection_wait_beside(struct store_connection *connection, int fd,
                                       int64_t deadline);

/* Breaks the connection: "the store at HOST:PORT is gone: " + the words + " during
 * CALL" + how long after the last answer. */
ct_status store_connection_break(struct store_connection *connection, ct_status status,
                                 const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "key", cut and without control characters: fits QUOTED_SIZE. */
#define QUOTED_SIZE 72
const char *store_connection_quote(struct bytes key, char quoted[QUOTED_SIZE]);

#endif
