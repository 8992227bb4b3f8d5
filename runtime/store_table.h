/* SPDX-License-Identifier: Apache-2.0 */
/* store_table.h - the store itself: bytes of a client in, replies out.  No sockets.
 *
 * Speaks PyTorch's TCPStore protocol (docs/protocol.md). */
#ifndef RUNTIME_STORE_TABLE_H
#define RUNTIME_STORE_TABLE_H

#include <stddef.h>

struct table;
struct table_client;

/* Called with each reply; possibly during another client's feed (a released wait). */
typedef void table_reply(void *owner, const void *data, size_t bytes);

struct table *table_create(void); /* NULL: no memory */
void table_destroy(struct table *table);
void table_clear(struct table *table); /* every key; waits go on */
int table_has(const struct table *table, const char *wire_key);

struct table_client *table_client_create(struct table *table, table_reply *reply, void *owner);
void table_client_destroy(struct table_client *client);

/* Any bytes, cut anywhere.  0, or -1: the client broke the protocol and is to be
 * closed; *why says how. */
int table_feed(struct table_client *client, const void *data, size_t bytes, const char **why);
int table_client_is_valid(const struct table_client *client); /* has it shown the magic? */

#endif
