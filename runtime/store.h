/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - what stands behind ct_store_*: one table of operations per kind.
 * The public calls check their arguments once, in store.c, and forward. */
#ifndef RUNTIME_STORE_H
#define RUNTIME_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/error.h"

struct event_base;

/* Bytes that somebody else owns. */
struct bytes {
    const void *data;
    size_t size;
};

/* Keys as the caller gave them, any bytes.  Values given out are malloc'ed, see
 * ct.h.  Each operation may be called from several threads. */
struct store_ops {
    const char *kind; /* "tcp", "file", "hash" */
    ct_status (*set)(ct_store *store, struct bytes key, struct bytes value);
    ct_status (*get)(ct_store *store, struct bytes key, int64_t deadline, void **value,
                     size_t *bytes);
    ct_status (*add)(ct_store *store, struct bytes key, int64_t delta, int64_t *result);
    ct_status (*wait)(ct_store *store, const struct bytes *keys, int count, int64_t deadline);
    ct_status (*check)(ct_store *store, const struct bytes *keys, int count, int *present);
    ct_status (*compare_set)(ct_store *store, struct bytes key, struct bytes expected,
                             struct bytes desired, void **value, size_t *bytes);
    ct_status (*delete_key)(ct_store *store, struct bytes key, int *deleted);
    ct_status (*num_keys)(ct_store *store, int64_t *count);
    ct_status (*append)(ct_store *store, struct bytes key, struct bytes value);
    ct_status (*multi_get)(ct_store *store, const struct bytes *keys, int count, int64_t deadline,
                           void **values, size_t *sizes);
    ct_status (*multi_set)(ct_store *store, const struct bytes *keys, int count,
                           const struct bytes *values);
    ct_status (*queue_push)(ct_store *store, struct bytes key, struct bytes value);
    ct_status (*queue_pop)(ct_store *store, struct bytes key, int64_t deadline, void **value,
                           size_t *bytes);
    ct_status (*queue_len)(ct_store *store, struct bytes key, int64_t *length);
    ct_status (*list_keys)(ct_store *store, char ***keys, int *count);
    void (*close)(ct_store *store);
};

/* Each kind starts with this.  One that ct_store_prefix() made is only this. */
struct ct_store {
    const struct store_ops *ops; /* NULL in a prefix */
    int timeout_ms;              /* the default of the waiting calls; -1: for ever */
    ct_store *base;              /* of a prefix; NULL: the store itself */
    char *prefix;                /* with its "/", no 0 behind */
    size_t prefix_size;
};

/* A TCP or abstract unix (host "@name", port 0) client.  Where the kind of store
 * server matters (the address to reach peers from), store_client_fd() is its
 * socket; -1 for every other kind, through prefixes. */
ct_status store_client_connect(const char *host, int port, int64_t deadline, int timeout_ms,
                               ct_store **store);
int store_client_fd(ct_store *store);
int store_client_socket(const ct_store *store); /* without looking through prefixes */

/* The server on an event loop of the caller's (ctrun's own loop, or that of
 * store_host).  Takes over listen_fd, a TCP or unix listener; on a unix one only
 * clients of our uid are served.  Not thread-safe: called on the loop's thread. */
struct store_server;
ct_status store_server_create(struct event_base *base, int listen_fd, struct store_server **server);
void store_server_clear(
    struct store_server *server); /* an empty table: nothing of an older round is left */
int store_server_clients(const struct store_server *server);                   /* connected now */
int store_server_has(const struct store_server *server, const char *wire_key); /* "/" + key */
void store_server_destroy(struct store_server *server);                        /* NULL is fine */

/* The server on a thread of its own, for a rank that hosts the store. */
struct store_host;
ct_status store_host_start(int listen_fd, struct store_host **host);
int store_host_clients(struct store_host *host);
void store_host_stop(struct store_host *host); /* NULL is fine */

#endif
