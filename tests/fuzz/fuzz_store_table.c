/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_store_table.c - whatever four clients send, cut wherever, in whatever order.
 *
 * The input is a row of pieces: a byte that says who and how many bytes follow (0:
 * something else happens, see event()), then those bytes.  Clients 0 to 2 have shown the
 * magic already.  Once all have left and the keys are cleared, nothing may be left. */
#include <stdint.h>
#include <stdlib.h>

#include "runtime/store/engine/engine_internal.h"

#define CLIENTS 4

struct owner {
    struct table_client *client;
    size_t answers;
    int is_full; /* it says "enough" to each answer */
};

static int take(void *arg, const void *data, size_t bytes)
{
    struct owner *owner = arg;

    for (size_t i = 0; i < bytes; i++) /* every byte must be readable */
        owner->answers += ((const unsigned char *)data)[i] + 1u;
    return owner->is_full;
}

static int take_value(void *arg, struct value *value)
{
    value_hold(value);
    take(arg, value->data, value->size);
    value_release(value);
    return ((struct owner *)arg)->is_full;
}

static const struct table_owner owner_ops = { take, take_value };

static void join(struct table *table, struct owner *owner, int valid)
{
    static const unsigned char magic[] = { 0, 0xce, 0xf7, 0x85, 0x3c };
    const char *why;
    size_t used;

    *owner = (struct owner){ .client = table_client_create(table, owner) };
    if (owner->client && valid)
        table_feed(owner->client, magic, sizeof magic, &used, &why);
}

static void leave(struct owner *owner)
{
    table_client_destroy(owner->client);
    owner->client = NULL;
}

static void feed(struct owner *owner, const uint8_t *data, size_t bytes)
{
    enum table_state state = TABLE_READY;
    const char *why = NULL;
    size_t used;

    if (!owner->client)
        return;
    do {
        state = table_feed(owner->client, data, bytes, &used, &why);
        data += used;
        bytes -= used;
    } while (state == TABLE_BUSY && bytes > 0);
    if (state != TABLE_BROKEN)
        return;
    if (!why)
        abort(); /* no refusal without a reason */
    leave(owner);
}

static void event(struct table *table, struct owner *owner, int which)
{
    if (which == 0)
        leave(owner);
    else if (which == 1 && !owner->client)
        join(table, owner, 1);
    else if (which == 2)
        owner->is_full = !owner->is_full;
    else if (which == 3)
        table_work(table);
    else if (which == 4)
        table_clear(table);
    else
        feed(owner, (const uint8_t *)"", 0); /* a turn */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct table *table = table_create(&owner_ops, 1 << 20, 1 << 18);
    struct owner owners[CLIENTS];

    if (!table)
        return 0;
    for (int i = 0; i < CLIENTS; i++)
        join(table, &owners[i], i < 3);
    while (size > 0) {
        struct owner *owner = &owners[data[0] % CLIENTS];
        size_t bytes = data[0] / CLIENTS;

        data++, size--;
        if (bytes == 0 && size > 0) {
            event(table, owner, data[0] % 6);
            data++, size--;
            continue;
        }
        bytes = bytes < size ? bytes : size;
        feed(owner, data, bytes);
        data += bytes;
        size -= bytes;
    }
    for (int i = 0; i < CLIENTS; i++)
        leave(&owners[i]);
    while (table_work(table))
        ;
    table_clear(table);
    if (table->map.entries != 0 || table->map.keys != 0 || table->map.oldest || table->lists)
        abort();
    if (table->budget.used != table->map.bucket_room * sizeof(struct entry *))
        abort(); /* something is not counted back */
    table_destroy(table);
    return 0;
}
