/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_wire.h - one connection to a store server: a request is put together,
 * sent at once, and its answer read by the store's timeout.
 *
 * An answer has no header, so a side that loses count is lost for good: whatever
 * goes wrong in the middle breaks the connection, and each later request fails
 * with CT_ERR_PEER and the same cause.  Nothing here locks. */
#ifndef RUNTIME_STORE_TCP_WIRE_H
#define RUNTIME_STORE_TCP_WIRE_H

#include "runtime/store/engine/request_parser.h"
#include "runtime/store/tcp_store.h"

struct store_host; /* server_thread.h */

struct wire {
    int fd;
    int timeout_ms; /* of each send and each answer; -1: for ever */
    char where[300];

    /* The caller's operation, for the sentences. */
    const char *call;
    const struct bytes *keys; /* the caller's, for as long as the call */
    int count;

    enum store_command command; /* the request that is being put together or answered */
    unsigned char *out;
    size_t size, room;
    int out_of_memory;

    unsigned char in[4096]; /* what came and was not asked for yet */
    size_t taken, filled;

    int64_t answered; /* when the last answer came */
    int unanswered;   /* requests sent since that have none: set and the like */
    int64_t broken_at;
    char cause[400]; /* "": not broken */

    /* Deaths end waits; NULL: nobody tells of them. */
    struct control *control;
    int alarm;      /* control_alarm() */
    uint32_t known; /* those that were told before */
    int any;        /* also those that ended well */
};

/* Takes over fd. */
void wire_open(struct wire *wire, int fd, const char *where, int timeout_ms);
void wire_close(struct wire *wire);

/* A request: what the caller calls it, then its parts.  Several commands may be
 * sent together. */
void wire_call(struct wire *wire, const char *call, const struct bytes *keys, int count);
void wire_command(struct wire *wire, enum store_command command);
void wire_put(struct wire *wire, const void *data, size_t bytes);
void wire_put_blob(struct wire *wire, struct bytes blob);
void wire_put_key(struct wire *wire, struct bytes key); /* "/" + key */
void wire_put_keys(struct wire *wire, const struct bytes *keys, int count);

ct_status wire_send(struct wire *wire);
ct_status wire_tell(struct wire *wire); /* a request without an answer */
ct_status wire_ask(struct wire *wire, void *answer, size_t bytes);

/* 1: something came or the connection broke; 0: the deadline passed. */
int wire_ready(const struct wire *wire, int64_t deadline);
ct_status wire_get(struct wire *wire, void *data, size_t bytes);
/* malloc'ed, with a 0 behind; nothing is set on a failure. */
ct_status wire_get_blob(struct wire *wire, void **value, size_t *bytes);

/* One round trip: absent[i] is 0 if keys[i] is there. */
ct_status wire_check_each(struct wire *wire, const struct bytes *keys, int count, uint8_t *absent);
/* Until all keys are there.  CT_ERR_TIMEOUT names those that are not. */
ct_status wire_wait(struct wire *wire, const struct bytes *keys, int count, int64_t deadline);

void wire_tells(struct wire *wire, struct control *control, uint32_t known, int any);
ct_status wire_look(struct wire *wire);

/* Breaks the connection: "the store at HOST:PORT is gone: " + the words + " during
 * CALL" + how long after the last answer. */
ct_status wire_break(struct wire *wire, ct_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "key", cut and without control characters: fits QUOTED_SIZE. */
#define QUOTED_SIZE 72
const char *wire_quote(struct bytes key, char quoted[QUOTED_SIZE]);

/* The store behind a connection (store/tcp_store.c), before any handshake; takes
 * over fd.  where is for the sentences. */
ct_status store_client_over(int fd, const char *where, int timeout_ms, ct_store **store);
struct wire *store_client_wire(ct_store *store);
void store_client_tells(ct_store *store, struct control *control, uint32_t known, int any);
void store_client_knows(ct_store *store, uint32_t known);
ct_status store_client_look(ct_store *store);
void store_client_hosts(ct_store *store, struct store_host *host); /* stopped with the store */

#endif
