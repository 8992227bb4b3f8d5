/* SPDX-License-Identifier: Apache-2.0 */
/* store_connection.h - a client's connection to a store server.  The client collects a request,
 * sends it with one call, and reads the answer within the store's timeout.
 *
 * An answer has no header, so a client that missed part of an answer can't find the next answer.
 * Any failure within a request or answer therefore breaks the connection, and each later request
 * fails with CT_ERR_PEER and the same cause.  The caller must hold a lock, since the functions take
 * none. */
#ifndef RUNTIME_STORE_STORE_CONNECTION_H
#define RUNTIME_STORE_STORE_CONNECTION_H

#include "runtime/store/engine/request_parser.h"
#include "runtime/util/error.h"

struct control; /* control_page.h */
struct secure_channel;

struct store_connection {
    int fd;
    struct secure_channel *channel; /* NULL if the connection is not encrypted */
    int timeout_ms;                 /* limit of each send and each answer; -1 if there is none */
    char where[300];                /* the server's name in error messages */

    /* The caller's operation and its keys, for error messages. */
    const char *call;
    const struct bytes *keys; /* valid during the call */
    int count;

    enum store_command command; /* the command that was added to a request last */
    unsigned char *out;
    size_t size, room;
    int out_of_memory;

    unsigned char in[4096]; /* received bytes; those from `taken` to `filled` were not read yet */
    size_t taken, filled;

    int64_t answered; /* when the last answer came, in ms */
    int unanswered;   /* requests sent since then that get no answer, for example set */
    int64_t broken_at;
    char cause[400]; /* why the connection broke; "" if it is not broken */

    /* A death in this control page ends a wait.  NULL if deaths do not end waits. */
    struct control *control;
    int alarm;      /* the descriptor from control_alarm(); -1 if there is none */
    uint32_t known; /* the first `known` deaths of the page do not end a wait */
    int any;        /* true if the end of a worker that exited with code 0 also ends a wait */
};

/* Initializes a connection, which takes over fd and channel.  channel is NULL if the connection is
 * not encrypted. */
void store_connection_open(struct store_connection *connection, int fd,
                           struct secure_channel *channel, const char *where, int timeout_ms);
void store_connection_close(struct store_connection *connection);

/* Build a request.  store_connection_call() comes first and gives the operation's name for error
 * messages.  The other functions add parts.  Several commands may be sent together. */
void store_connection_call(struct store_connection *connection, const char *call,
                           const struct bytes *keys, int count);
void store_connection_command(struct store_connection *connection, enum store_command command);
void store_connection_put(struct store_connection *connection, const void *data, size_t bytes);
void store_connection_put_blob(struct store_connection *connection, struct bytes blob);
void store_connection_put_key(struct store_connection *connection,
                              struct bytes key); /* adds "/" + key */
void store_connection_put_keys(struct store_connection *connection, const struct bytes *keys,
                               int count);

ct_status store_connection_send(struct store_connection *connection);
ct_status
store_connection_post(struct store_connection *connection); /* sends a request that has no answer */
ct_status store_connection_ask(struct store_connection *connection, void *answer, size_t bytes);

/* Waits until bytes have come.  Returns 1 if bytes came or the connection broke, and 0 if the
 * deadline passed. */
int store_connection_ready(const struct store_connection *connection, int64_t deadline);
ct_status store_connection_get(struct store_connection *connection, void *data, size_t bytes);
/* Reads a value.  Sets *value to malloc'ed memory with a NUL byte behind the value.  Sets nothing
 * if it fails. */
ct_status store_connection_get_blob(struct store_connection *connection, void **value,
                                    size_t *bytes);

/* Sets absent[i] to 0 if keys[i] exists.  Checks all keys in one round trip. */
ct_status store_connection_check_each(struct store_connection *connection, const struct bytes *keys,
                                      int count, uint8_t *absent);
/* Waits until all keys exist.  After CT_ERR_TIMEOUT, the error text names missing keys. */
ct_status store_connection_wait(struct store_connection *connection, const struct bytes *keys,
                                int count, int64_t deadline);

/* See store_watch_deaths() and store_check_deaths(). */
void store_connection_watch_deaths(struct store_connection *connection, struct control *control,
                                   uint32_t known, int any);
ct_status store_connection_check_deaths(struct store_connection *connection);
/* Waits until fd is readable (CT_OK), a death ends the wait (CT_ERR_PEER) or the deadline passes
 * (CT_ERR_TIMEOUT).  If connection is NULL, deaths do not end the wait. */
ct_status store_connection_wait_beside(struct store_connection *connection, int fd,
                                       int64_t deadline);

/* Shuts the connection down, so that each later request fails.  Returns status with the error "the
 * store at HOST:PORT is gone: WORDS during CALL, N s after its last answer". */
ct_status store_connection_break(struct store_connection *connection, ct_status status,
                                 const char *format, ...) __attribute__((format(printf, 3, 4)));

#define QUOTED_SIZE 72
/* Writes the key in quotes, cut to fit, with '?' for control characters.  Returns `quoted`. */
const char *store_connection_quote(struct bytes key, char quoted[QUOTED_SIZE]);

#endif
