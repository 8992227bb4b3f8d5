/* SPDX-License-Identifier: Apache-2.0 */
/* value.h - the store's memory, counted against a limit; and values with several holders (the map
 * and send queues). */
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
    size_t used, limit;
    struct garbage *garbage; /* large blocks that were freed, on their way back to the kernel */
};

/* NULL: no memory, or the limit is reached.  The caller remembers the size of the block.  No call
 * takes long: a large block grows by moving its pages, not its bytes, and goes back to the kernel a
 * piece at a time, by budget_sweep(). */
void *budget_alloc(struct budget *budget, size_t bytes);
void *budget_resize(struct budget *budget, void *memory, size_t from, size_t to);
void budget_free(struct budget *budget, void *memory, size_t bytes);
/* Gives a piece of the freed memory back to the kernel.  1: there is more of it. */
int budget_sweep(struct budget *budget);

struct value {
    struct budget *budget;
    size_t size, room;
    unsigned holders;
    unsigned char data[];
};

struct value *value_create(struct budget *budget, const void *data, size_t bytes); /* one holder */
/* Makes room for a value's only holder.  NULL: no memory; the value is unchanged. */
struct value *value_reserve(struct value *value, size_t room);
struct value *value_hold(struct value *value);
void value_release(struct value *value); /* NULL is fine */

#endif
