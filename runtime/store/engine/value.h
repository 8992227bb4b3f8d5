/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - memory of the store that is counted against a limit, and values that several holders
 * share, such as the map and send queues. */
#ifndef RUNTIME_STORE_ENGINE_VALUE_H
#define RUNTIME_STORE_ENGINE_VALUE_H

#include <stddef.h>

/* Bytes that another object owns. */
struct bytes {
    const void *data;
    size_t size;
};

/* Counts all memory that clients can make the store use. */
struct budget {
    size_t used, limit;      /* bytes */
    struct garbage *garbage; /* large blocks that were freed but are still mapped */
};

/* Allocate, grow and free a block.  Return NULL if out of memory or if the limit is reached.  The
 * caller must pass the size of a block to resize or free it.  No call takes long.  A large block
 * grows by mremap() without a copy, and budget_sweep() unmaps a freed large block in pieces. */
void *budget_alloc(struct budget *budget, size_t bytes);
void *budget_resize(struct budget *budget, void *memory, size_t from, size_t to);
void budget_free(struct budget *budget, void *memory, size_t bytes);
/* Unmaps a piece of a freed large block.  Returns 1 if more is left to unmap. */
int budget_sweep(struct budget *budget);

struct value {
    struct budget *budget;
    size_t size, room;
    unsigned holders;
    unsigned char data[];
};

/* Returns a value with one holder; NULL if out of memory. */
struct value *value_create(struct budget *budget, const void *data, size_t bytes);
/* Returns the value with room for `room` bytes, maybe at another address.  The value must have only
 * one holder.  Returns NULL if out of memory; the value is then unchanged. */
struct value *value_reserve(struct value *value, size_t room);
struct value *value_hold(struct value *value); /* adds a holder */
void value_release(struct value *value);       /* removes a holder; value may be NULL */

#endif
