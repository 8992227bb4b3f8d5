/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - the store itself: bytes of a client in, replies out.  No sockets.
 *
 * Speaks PyTorch's TCPStore protocol (docs/protocol.md).  Nothing takes long: a
 * request with very many keys, or a key that very many wait for, is dealt with
 * in turns of some 100 us, between which the owner serves its other clients. */
#ifndef RUNTIME_STORE_ENGINE_SESSION_H
#define RUNTIME_STORE_ENGINE_SESSION_H

#include <stddef.h>

#include "runtime/store/engine/value.h"

struct table;
struct table_client;

/* Called with a client's owner; possibly during another client's turn (a released
 * wait).  1: that is enough, no more answers for now, please; 0: go on. */
struct table_owner {
    int (*reply)(void *owner, const void *data, size_t bytes);
    int (*reply_value)(void *owner, struct value *value); /* holds it as long as it needs it */
};

/* memory: bytes of keys, values and requests in all; request: of one request. */
struct table *table_create(const struct table_owner *owner, size_t memory, size_t request);
void table_destroy(struct table *table);
void table_clear(struct table *table); /* every key; waits go on */
int table_has(const struct table *table, const char *wire_key);
struct budget *table_budget(struct table *table); /* for what its owner keeps for clients */

struct table_client *table_client_create(struct table *table, void *owner); /* NULL: no memory */
/* It has left; a MULTI_SET that it sent whole is carried out whole.  NULL is fine. */
void table_client_destroy(struct table_client *client);
void table_client_drop(struct table_client *client); /* the same, and it is not */

/* BUSY: the request goes on when table_feed() is called again, with what was not used
 * (or nothing).  BROKEN: the client broke the protocol and is to be closed; *why says how. */
enum table_state { TABLE_READY, TABLE_BUSY, TABLE_BROKEN };

/* Any bytes, cut anywhere. */
enum table_state table_feed(struct table_client *client, const void *data, size_t bytes,
                            size_t *used, const char **why);
int table_client_is_valid(const struct table_client *client); /* has it shown the magic? */

/* A turn of what is left to do for clients that waited or left.  1: there is more. */
int table_work(struct table *table);

#endif
