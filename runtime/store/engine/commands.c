/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - what each command of PyTorch's store means.
 *
 * Commands with many keys look at them in turns (take_turn()): up to TURN keys
 * are one instant, beyond that other clients' requests come in between.  Where
 * PyTorch's two servers differ, docs/protocol.md says which way is ours. */
#include <string.h>

#include "runtime/store/engine/engine_internal.h"

#define SMALL 512 /* a value from here on is lent to the answer, not copied into it */

typedef enum progress command(struct table_client *client, const struct request_args *args);

/* ---- Replies ---------------------------------------------------------------- */

static void reply(struct table_client *client, const void *data, size_t bytes)
{
    if (client->owner && client->table->owner->reply(client->owner, data, bytes))
        client->enough = 1;
}

void reply_u8(struct table_client *client, uint8_t value)
{
    reply(client, &value, sizeof value);
}

void reply_i64(struct table_client *client, int64_t value)
{
    reply(client, &value, sizeof value);
}

void reply_blob(struct table_client *client, struct bytes blob)
{
    const uint64_t size = blob.size;
    unsigned char small[8 + SMALL];

    memcpy(small, &size, sizeof size);
    if (blob.size <= SMALL) {
        if (blob.size > 0)
            memcpy(small + 8, blob.data, blob.size);
        reply(client, small, 8 + blob.size);
        return;
    }
    reply(client, small, 8);
    reply(client, blob.data, blob.size);
}

static void reply_value(struct table_client *client, struct value *value)
{
    const uint64_t size = value ? value->size : 0;

    if (!value || size <= SMALL) {
        reply_blob(client, value ? (struct bytes){ value->data, size } : (struct bytes){ 0 });
        return;
    }
    reply(client, &size, sizeof size);
    if (client->owner && client->table->owner->reply_value(client->owner, value))
        client->enough = 1;
}

/* ---- Failures --------------------------------------------------------------- */

/* entry may be NULL: that is what there was no memory for. */
static enum progress no_memory(struct table_client *client, struct entry *entry)
{
    if (entry)
        map_drop_if_idle(&client->table->map, entry);
    client->why = "the store has no memory left for its request (store-memory in job.ini)";
    return BROKEN;
}

/* ---- Values ----------------------------------------------------------------- */

/* A large blob is kept where it came in. */
static struct value *value_of(struct table_client *client, const struct request_args *args,
                              size_t which)
{
    const struct bytes bytes = request_blob(args, which);
    struct value *large = args->blobs[which].value;

    return large ? value_hold(large) : value_create(&client->table->budget, bytes.data, bytes.size);
}

/* SET, and MULTI_SET with its many pairs. */
static enum progress do_set(struct table_client *client, const struct request_args *args)
{
    struct table *table = client->table;

    for (; client->at + 1 < args->count; client->at += 2) {
        struct entry *entry;

        if (!take_turn(client))
            return MORE;
        entry = map_get(&table->map, request_blob(args, client->at));
        if (!entry || entry_set(&table->map, entry, value_of(client, args, client->at + 1)) < 0)
            return no_memory(client, entry);
        wait_over(table, entry);
    }
    return DONE;
}

static enum progress do_append(struct table_client *client, const struct request_args *args)
{
    struct entry *entry = map_get(&client->table->map, request_blob(args, 0));

    if (!entry || entry_append(&client->table->map, entry, request_blob(args, 1)) < 0)
        return no_memory(client, entry);
    wait_over(client->table, entry);
    return DONE;
}

/* All PyTorch's cases: a missing key with an expectation answers the expectation. */
static enum progress do_compare_set(struct table_client *client, const struct request_args *args)
{
    struct map *map = &client->table->map;
    struct entry *entry = map_find(map, request_blob(args, 0));
    struct value *now = entry ? entry->value : NULL;
    const struct bytes expected = request_blob(args, 1);

    if (!now && expected.size > 0) {
        reply_blob(client, expected);
        return DONE;
    }
    if (now
        && (now->size != expected.size
            || (expected.size > 0 && memcmp(now->data, expected.data, expected.size)))) {
        reply_value(client, now);
        return DONE;
    }
    entry = map_get(map, request_blob(args, 0));
    if (!entry || entry_set(map, entry, value_of(client, args, 2)) < 0)
        return no_memory(client, entry);
    reply_value(client, entry->value);
    wait_over(client->table, entry);
    return DONE;
}

/* GET, and MULTI_GET with its many keys. */
static enum progress do_get(struct table_client *client, const struct request_args *args)
{
    for (; client->at < args->count; client->at++) {
        const struct entry *entry;

        if (!take_turn(client))
            return MORE;
        entry = map_find(&client->table->map, request_blob(args, client->at));
        reply_value(client, entry ? entry->value : NULL);
    }
    return DONE;
}

static enum progress add(struct table_client *client, struct entry *entry, int64_t delta,
                         int64_t *sum)
{
    const int failed = entry ? entry_add(&client->table->map, entry, delta, sum) : -2;

    if (failed == -2)
        return no_memory(client, entry);
    client->why = "its ADD or BARRIER met a value that is no number";
    return failed ? BROKEN : DONE;
}

static enum progress do_add(struct table_client *client, const struct request_args *args)
{
    struct entry *entry = map_get(&client->table->map, request_blob(args, 0));
    int64_t sum;

    if (add(client, entry, args->number, &sum) == BROKEN)
        return BROKEN;
    reply_i64(client, sum);
    wait_over(client->table, entry);
    return DONE;
}

static enum progress do_delete(struct table_client *client, const struct request_args *args)
{
    struct entry *entry = map_find(&client->table->map, request_blob(args, 0));
    const int present = entry && entry->value;

    if (present) {
        listing_forget(client->table, entry);
        map_drop_if_idle(&client->table->map, entry);
    }
    reply_i64(client, present);
    return DONE;
}

static enum progress do_num_keys(struct table_client *client, const struct request_args *args)
{
    (void)args;
    reply_i64(client, client->table->map.keys);
    return DONE;
}

static enum progress do_ping(struct table_client *client, const struct request_args *args)
{
    const uint32_t nonce = (uint32_t)args->number;

    reply(client, &nonce, sizeof nonce);
    return DONE;
}

/* ---- Waiting ---------------------------------------------------------------- */

static enum progress do_check(struct table_client *client, const struct request_args *args)
{
    for (; client->at < args->count; client->at++) {
        if (!take_turn(client))
            return MORE;
        if (!entry_ready(map_find(&client->table->map, request_blob(args, client->at))))
            break;
    }
    reply_u8(client, client->at < args->count);
    return DONE;
}

static int no_longer_waits(struct table_client *client)
{
    if (!wait_stop(client, client->turn))
        return 1;
    client->turn = 0;
    return 0;
}

/* A key may be stored while we are still at the others: only the end tells. */
static enum progress do_wait(struct table_client *client, const struct request_args *args)
{
    if (!client->asking && !no_longer_waits(client))
        return MORE;
    client->asking = 1;
    for (; client->at < args->count; client->at++) {
        const struct bytes key = request_blob(args, client->at);
        struct entry *entry;

        if (!take_turn(client))
            return MORE;
        entry = map_find(&client->table->map, key);
        if (entry_ready(entry))
            continue;
        if (!entry)
            entry = map_get(&client->table->map, key);
        if (!entry || wait_for(client, entry) < 0)
            return no_memory(client, entry);
    }
    client->asking = 0;
    if (link_alone(&client->waits))
        reply_u8(client, 0);
    return DONE;
}

static enum progress do_cancel_wait(struct table_client *client, const struct request_args *args)
{
    (void)args;
    if (!no_longer_waits(client))
        return MORE;
    reply_u8(client, 1);
    return DONE;
}

/* Not cyclic: the counter stays, so the same key passes at once the next time. */
static enum progress do_barrier(struct table_client *client, const struct request_args *args)
{
    struct entry *entry;
    int64_t arrived;

    if (!no_longer_waits(client))
        return MORE;
    entry = map_get(&client->table->map, request_blob(args, 0));
    if (add(client, entry, 1, &arrived) == BROKEN)
        return BROKEN;
    if (arrived < args->number)
        return wait_for(client, entry) < 0 ? no_memory(client, entry) : DONE;
    reply_u8(client, 0);
    wait_over(client->table, entry);
    return DONE;
}

/* ---- Queues ----------------------------------------------------------------- */

static enum progress do_queue_push(struct table_client *client, const struct request_args *args)
{
    struct entry *entry = map_get(&client->table->map, request_blob(args, 0));

    if (!entry || entry_push(&client->table->map, entry, value_of(client, args, 1)) < 0)
        return no_memory(client, entry);
    wait_over_one(client->table, entry);
    return DONE;
}

static enum progress do_queue_pop(struct table_client *client, const struct request_args *args)
{
    struct entry *entry = map_find(&client->table->map, request_blob(args, 0));
    struct value *value;

    reply_i64(client, entry_queued(entry));
    value = entry ? entry_pop(&client->table->map, entry) : NULL;
    if (value) {
        reply_value(client, value);
        value_release(value);
        map_drop_if_idle(&client->table->map, entry);
    }
    return DONE;
}

static enum progress do_queue_len(struct table_client *client, const struct request_args *args)
{
    const struct entry *entry = map_find(&client->table->map, request_blob(args, 0));

    reply_i64(client, entry_queued(entry));
    return DONE;
}

/* ---- All of them ------------------------------------------------------------ */

static command *const commands[STORE_COMMANDS] = {
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
    [STORE_LIST_KEYS] = listing_run,
    [STORE_BARRIER] = do_barrier,
};

enum progress command_run(struct table_client *client, const struct request_args *args)
{
    return commands[args->command](client, args);
}
