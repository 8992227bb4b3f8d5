/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_wire.h - one connection to a store server: a request is put together and sent at once, and
 * its answer is read within the store's timeout.
 *
 * An answer has no header, so a client that missed part of one can't find the next one.  Any
 * failure within a request or answer therefore breaks the connection, and each later request fails
 * with CT_ERR_PEER and the same cause.  The caller locks. */
#ifndef RUNTIME_STORE_TCP_WIRE_H
#define RUNTIME_STORE_TCP_WIRE_H

#include "runtime/store/engine/request_parser.h"
#include "runtime/util/error.h"

struct control; /* control_page.h */
struct secure_channel;

struct store_wire {
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

    /* A death on this control page ends a wait.  NULL: deaths end no wait. */
    struct control *control;
    int alarm;      /* control_alarm() */
    uint32_t known; /* deaths that were handled before */
    int any;        /* the end of a worker that exited with 0 ends a wait, too */
};

/* Starts a wire on fd.  Takes over fd and its channel (NULL: not encrypted). */
void wire_open(struct store_wire *wire, int fd, struct secure_channel *channel, const char *where,
               int timeout_ms);
void wire_close(struct store_wire *wire);

/* Puts a request together: first the caller's name for it, then its parts.  Several commands may be
 * sent together. */
void wire_call(struct store_wire *wire, const char *call, const struct bytes *keys, int count);
void wire_command(struct store_wire *wire, enum store_command command);
void wire_put(struct store_wire *wire, const void *data, size_t bytes);
void wire_put_blob(struct store_wire *wire, struct bytes blob);
void wire_put_key(struct store_wire *wire, struct bytes key); /* "/" + key */
void wire_put_keys(struct store_wire *wire, const struct bytes *keys, int count);

ct_status wire_send(struct store_wire *wire);
ct_status wire_post(struct store_wire *wire); /* sends a request that has no answer */
ct_status wire_ask(struct store_wire *wire, void *answer, size_t bytes);

/* Waits for an answer.  1: bytes came or the connection broke; 0: the deadline passed. */
int wire_ready(const struct store_wire *wire, int64_t deadline);
ct_status wire_get(struct store_wire *wire, void *data, size_t bytes);
/* Gives a malloc'ed value, followed by a 0 byte.  A failure sets nothing. */
ct_status wire_get_blob(struct store_wire *wire, void **value, size_t *bytes);

/* Sets absent[i] to 0 if keys[i] exists, in one round trip. */
ct_status wire_check_each(struct store_wire *wire, const struct bytes *keys, int count,
                          uint8_t *absent);
/* Waits until all keys are there.  CT_ERR_TIMEOUT names the missing ones. */
ct_status wire_wait(struct store_wire *wire, const struct bytes *keys, int count, int64_t deadline);

/* See store_watch_deaths() and store_check_deaths(). */
void wire_watch_deaths(struct store_wire *wire, struct control *control, uint32_t known, int any);
ct_status wire_check_deaths(struct store_wire *wire);
/* Waits until fd is readable or a death ends the wait.  wire NULL: ignores deaths. */
ct_status wire_wait_beside(struct store_wire *wire, int fd, int64_t deadline);

/* Breaks the connection.  The error says: "the store at HOST:PORT is gone: " + the words + " during
 * CALL" + the time since the last answer. */
ct_status wire_break(struct store_wire *wire, ct_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Quotes a key for a message: cuts it to QUOTED_SIZE, replaces control characters. */
#define QUOTED_SIZE 72
const char *wire_quote(struct bytes key, char quoted[QUOTED_SIZE]);

#endif
