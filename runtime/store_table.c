/* SPDX-License-Identifier: Apache-2.0 */
/* store_table.c - requests to replies.
 *
 * A request is gathered byte by byte (store_request.c) until it is whole, then
 * carried out at once: so a MULTI_SET applies entirely or not at all.  A WAIT
 * for missing keys leaves a node at each of them; storing a key takes its nodes
 * away, and the last one answers.  What counts is that a key was stored once
 * since, not that all are there at one moment, as in PyTorch. */
#include "runtime/store_table.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/store_map.h"
#include "runtime/store_request.h"

struct waiter_node {
    struct waiter_node *next;     /* at the entry */
    struct waiter_node *next_own; /* of the client */
    struct entry *entry;
    struct table_client *client;
};

struct table {
    struct map map;
};

struct table_client {
    struct table *table;
    table_reply *reply;
    void *owner;
    struct request_reader reader;
    struct waiter_node *waits; /* what is still missing; NULL: not waiting */
    int valid;
    const char *why;
};

/* ---- Waiting -------------------------------------------------------------- */

static void reply_u8(struct table_client *client, uint8_t value)
{
    client->reply(client->owner, &value, sizeof value);
}

static void reply_i64(struct table_client *client, int64_t value)
{
    client->reply(client->owner, &value, sizeof value);
}

static void reply_blob(struct table_client *client, struct bytes value)
{
    const uint64_t size = value.size;

    client->reply(client->owner, &size, sizeof size);
    if (value.size > 0)
        client->reply(client->owner, value.data, value.size);
}

static int wait_for(struct table_client *client, struct entry *entry)
{
    struct waiter_node *node = malloc(sizeof *node);

    if (!node)
        return -1;
    *node = (struct waiter_node){ .next_own = client->waits, .entry = entry, .client = client };
    client->waits = node;
    *entry->waiters_end = node;
    entry->waiters_end = &node->next;
    return 0;
}

static void unlink_from_entry(struct waiter_node *node)
{
    struct waiter_node **link = &node->entry->waiters;

    while (*link != node)
        link = &(*link)->next;
    *link = node->next;
    if (!*link)
        node->entry->waiters_end = link;
}

static void unlink_from_client(struct waiter_node *node)
{
    struct waiter_node **link = &node->client->waits;

    while (*link != node)
        link = &(*link)->next_own;
    *link = node->next_own;
}

static void stop_waiting(struct table_client *client)
{
    while (client->waits) {
        struct waiter_node *node = client->waits;

        client->waits = node->next_own;
        unlink_from_entry(node);
        map_drop_if_idle(&client->table->map, node->entry);
        free(node);
    }
}

/* The entry was stored: everybody's wait for it is over; or, for a push, that
 * of the first client, since only one can pop. */
static void release(struct entry *entry, int only_first)
{
    struct waiter_node *node = entry->waiters, **kept = &entry->waiters;
    struct table_client *first = node ? node->client : NULL;

    while (node) {
        struct waiter_node *next = node->next;
        struct table_client *client = node->client;

        if (only_first && client != first) {
            *kept = node;
            kept = &node->next;
        } else {
            unlink_from_client(node);
            free(node);
            if (!client->waits)
                reply_u8(client, 0);
        }
        node = next;
    }
    *kept = NULL;
    entry->waiters_end = kept;
}

/* ---- Commands ------------------------------------------------------------- */

typedef int command(struct table_client *client, const struct request_args *args);

static int no_memory(struct table_client *client)
{
    client->why = "there is no memory for it";
    return -1;
}

static int do_ping(struct table_client *client, const struct request_args *args)
{
    const uint32_t nonce = (uint32_t)args->number;

    client->reply(client->owner, &nonce, sizeof nonce);
    return 0;
}

static int do_set(struct table_client *client, const struct request_args *args)
{
    for (size_t i = 0; i + 1 < args->count; i += 2) { /* MULTI_SET has many pairs */
        struct entry *entry = map_get(&client->table->map, args->blobs[i]);

        if (!entry || entry_set(&client->table->map, entry, args->blobs[i + 1]) < 0)
            return no_memory(client);
        release(entry, 0);
    }
    return 0;
}

static int do_append(struct table_client *client, const struct request_args *args)
{
    struct entry *entry = map_get(&client->table->map, args->blobs[0]);

    if (!entry || entry_append(&client->table->map, entry, args->blobs[1]) < 0)
        return no_memory(client);
    release(entry, 0);
    return 0;
}

/* All PyTorch's cases: a missing key with an expectation answers the expectation. */
static int do_compare_set(struct table_client *client, const struct request_args *args)
{
    struct entry *entry = map_find(&client->table->map, args->blobs[0]);
    const struct bytes expected = args->blobs[1], desired = args->blobs[2];
    const int present = entry && entry->present;

    if (!present && expected.size > 0) {
        reply_blob(client, expected);
        return 0;
    }
    if (present
        && (entry->value_size != expected.size
            || (expected.size > 0 && memcmp(entry->value, expected.data, expected.size)))) {
        reply_blob(client, entry_value(entry));
        return 0;
    }
    entry = map_get(&client->table->map, args->blobs[0]);
    if (!entry || entry_set(&client->table->map, entry, desired) < 0)
        return no_memory(client);
    reply_blob(client, desired);
    release(entry, 0);
    return 0;
}

static int do_get(struct table_client *client, const struct request_args *args)
{
    for (size_t i = 0; i < args->count; i++) { /* MULTI_GET has many keys */
        const struct entry *entry = map_find(&client->table->map, args->blobs[i]);

        reply_blob(client, entry && entry->present ? entry_value(entry) : (struct bytes){ 0 });
    }
    return 0;
}

static int add(struct table_client *client, struct entry *entry, int64_t delta, int64_t *sum)
{
    const int failed = entry ? entry_add(&client->table->map, entry, delta, sum) : -2;

    if (failed == -2)
        return no_memory(client);
    if (failed)
        client->why = "its ADD or BARRIER met a value that is no number";
    return failed;
}

static int do_add(struct table_client *client, const struct request_args *args)
{
    struct entry *entry = map_get(&client->table->map, args->blobs[0]);
    int64_t sum;

    if (add(client, entry, args->number, &sum) < 0)
        return -1;
    reply_i64(client, sum);
    release(entry, 0);
    return 0;
}

static int do_check(struct table_client *client, const struct request_args *args)
{
    int ready = 1;

    for (size_t i = 0; i < args->count && ready; i++)
        ready = entry_ready(map_find(&client->table->map, args->blobs[i]));
    reply_u8(client, !ready);
    return 0;
}

static int do_wait(struct table_client *client, const struct request_args *args)
{
    stop_waiting(client);
    for (size_t i = 0; i < args->count; i++) {
        struct entry *entry = map_find(&client->table->map, args->blobs[i]);

        if (entry_ready(entry))
            continue;
        if (!entry)
            entry = map_get(&client->table->map, args->blobs[i]);
        if (!entry || wait_for(client, entry) < 0)
            return no_memory(client);
    }
    if (!client->waits)
        reply_u8(client, 0);
    return 0;
}

static int do_cancel_wait(struct table_client *client, const struct request_args *args)
{
    (void)args;
    stop_waiting(client);
    reply_u8(client, 1);
    return 0;
}

static int do_num_keys(struct table_client *client, const struct request_args *args)
{
    (void)args;
    reply_i64(client, client->table->map.keys);
    return 0;
}

static int do_delete(struct table_client *client, const struct request_args *args)
{
    struct entry *entry = map_find(&client->table->map, args->blobs[0]);
    const int present = entry && entry->present;

    if (present) {
        entry_delete(&client->table->map, entry);
        map_drop_if_idle(&client->table->map, entry);
    }
    reply_i64(client, present);
    return 0;
}

static int do_queue_push(struct table_client *client, const struct request_args *args)
{
    struct entry *entry = map_get(&client->table->map, args->blobs[0]);

    if (!entry || entry_push(entry, args->blobs[1]) < 0)
        return no_memory(client);
    release(entry, 1);
    return 0;
}

static int do_queue_pop(struct table_client *client, const struct request_args *args)
{
    struct entry *entry = map_find(&client->table->map, args->blobs[0]);
    struct queued *queued;

    reply_i64(client, entry ? entry->queue_length : 0);
    queued = entry ? entry_pop(entry) : NULL;
    if (queued) {
        reply_blob(client, (struct bytes){ queued->data, queued->size });
        free(queued);
        map_drop_if_idle(&client->table->map, entry);
    }
    return 0;
}

static int do_queue_len(struct table_client *client, const struct request_args *args)
{
    const struct entry *entry = map_find(&client->table->map, args->blobs[0]);

    reply_i64(client, entry ? entry->queue_length : 0);
    return 0;
}

static void reply_key(const struct entry *entry, void *arg)
{
    reply_blob(arg, (struct bytes){ entry->key, entry->key_size });
}

static int do_list_keys(struct table_client *client, const struct request_args *args)
{
    (void)args;
    reply_i64(client, client->table->map.keys);
    map_each(&client->table->map, reply_key, client);
    return 0;
}

/* Not cyclic: the counter stays, so the same key passes at once the next time. */
static int do_barrier(struct table_client *client, const struct request_args *args)
{
    struct entry *entry = map_get(&client->table->map, args->blobs[0]);
    int64_t arrived;

    if (add(client, entry, 1, &arrived) < 0)
        return -1;
    if (arrived < args->number) {
        stop_waiting(client);
        return wait_for(client, entry) < 0 ? no_memory(client) : 0;
    }
    reply_u8(client, 0);
    release(entry, 0);
    return 0;
}

static command *const commands[] = {
    [STORE_SET] = do_set,
    [STORE_COMPARE_SET] = do_compare_set,
    [STORE_GET] = do_get,
    [STORE_ADD] = do_add,
    [STORE_CHECK] = do_check,
    [STORE_WAIT] = do_wait,
    [STORE_NUM_KEYS] = do_num_keys,
    [STORE_DELETE] = do_delete,
    [STORE_APPEND] = do_append,
    [STORE_MULTI_GET] = do_get,
    [STORE_MULTI_SET] = do_set,
    [STORE_CANCEL_WAIT] = do_cancel_wait,
    [STORE_PING] = do_ping,
    [STORE_QUEUE_PUSH] = do_queue_push,
    [STORE_QUEUE_POP] = do_queue_pop,
    [STORE_QUEUE_LEN] = do_queue_len,
    [STORE_LIST_KEYS] = do_list_keys,
    [STORE_BARRIER] = do_barrier,
};

static int carry_out(struct table_client *client, const struct request_args *args)
{
    if (!client->valid) {
        client->valid = args->command == STORE_VALIDATE && args->number == STORE_MAGIC;
        client->why = "it did not begin with PyTorch's magic";
        return client->valid ? 0 : -1;
    }
    if (args->command == STORE_VALIDATE) {
        client->why = "it sent a command that does not exist";
        return -1;
    }
    return commands[args->command](client, args);
}

/* ---- Clients -------------------------------------------------------------- */

int table_feed(struct table_client *client, const void *data, size_t bytes, const char **why)
{
    const unsigned char *at = data;
    struct request_args args;

    while (bytes > 0) {
        const size_t used = request_read(&client->reader, at, bytes);

        at += used;
        bytes -= used;
        /* Before the magic only VALIDATE may be gathered, or strangers could fill memory. */
        if (!client->valid && request_command(&client->reader) != STORE_VALIDATE) {
            *why = "it did not begin with PyTorch's magic";
            return -1;
        }
        switch (request_state(&client->reader, &args)) {
        case REQUEST_PARTIAL:
            break;
        case REQUEST_WHOLE:
            if (carry_out(client, &args) < 0) {
                *why = client->why;
                return -1;
            }
            request_next(&client->reader);
            break;
        case REQUEST_BAD:
            *why = client->reader.why;
            return -1;
        }
    }
    return 0;
}

int table_client_is_valid(const struct table_client *client)
{
    return client->valid;
}

struct table_client *table_client_create(struct table *table, table_reply *reply, void *owner)
{
    struct table_client *client = calloc(1, sizeof *client);

    if (client) {
        client->table = table;
        client->reply = reply;
        client->owner = owner;
    }
    return client;
}

void table_client_destroy(struct table_client *client)
{
    if (!client)
        return;
    stop_waiting(client);
    request_done(&client->reader);
    free(client);
}

struct table *table_create(void)
{
    struct table *table = calloc(1, sizeof *table);

    if (table && map_init(&table->map) < 0) {
        free(table);
        return NULL;
    }
    return table;
}

void table_destroy(struct table *table)
{
    if (!table)
        return;
    map_done(&table->map);
    free(table);
}

int table_has(const struct table *table, const char *wire_key)
{
    const struct entry *entry = map_find(&table->map, (struct bytes){ wire_key, strlen(wire_key) });

    return entry && entry->present;
}

/* Entries with waiters stay, without their values. */
void table_clear(struct table *table)
{
    for (size_t i = 0; i < table->map.bucket_count; i++)
        for (struct entry *entry = table->map.buckets[i], *next; entry; entry = next) {
            next = entry->next;
            if (entry->present)
                entry_delete(&table->map, entry);
            while (entry->queue)
                free(entry_pop(entry));
            map_drop_if_idle(&table->map, entry);
        }
}
