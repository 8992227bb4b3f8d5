/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - clients of the store: their bytes into requests, one at a time.
 *
 * A request is gathered (store/engine/request_parser.c) until it is whole, then carried out
 * (store/engine/commands.c), so one that is cut off in the middle has no effect.  A
 * request that needs more than a turn stays where it is until table_feed() is
 * called again. */
#include "runtime/store/engine/session.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/store/engine/engine_internal.h"

/* ---- Requests --------------------------------------------------------------- */

static enum progress carry_out(struct table_client *client)
{
    struct request_args args;

    request_state(&client->reader, &args);
    if (!client->valid) {
        client->valid = args.command == STORE_VALIDATE && args.number == STORE_MAGIC;
        client->why = "it did not begin with PyTorch's magic";
        return client->valid ? DONE : BROKEN;
    }
    if (args.command == STORE_VALIDATE) {
        client->why = "it sent a command that does not exist";
        return BROKEN;
    }
    return command_run(client, &args);
}

static enum progress go_on(struct table_client *client)
{
    const enum progress progress = carry_out(client);

    client->carrying = progress == MORE;
    if (progress != DONE)
        return progress;
    request_next(&client->reader);
    client->at = 0;
    wait_tell(client->table, &client->turn);
    return take_turn(client) ? DONE : MORE;
}

/* Bytes until the next request is whole. */
static enum progress gather(struct table_client *client, const unsigned char *data, size_t bytes,
                            size_t *used)
{
    struct request_args args;

    *used += request_read(&client->reader, data, bytes);
    /* Before the magic only VALIDATE may be gathered, or strangers could fill memory. */
    if (!client->valid && request_command(&client->reader) != STORE_VALIDATE) {
        client->why = "it did not begin with PyTorch's magic";
        return BROKEN;
    }
    switch (request_state(&client->reader, &args)) {
    case REQUEST_WHOLE:
        return go_on(client);
    case REQUEST_BAD:
        client->why = client->reader.why;
        return BROKEN;
    case REQUEST_PARTIAL:
        break;
    }
    return DONE;
}

enum table_state table_feed(struct table_client *client, const void *data, size_t bytes,
                            size_t *used, const char **why)
{
    enum progress progress = DONE;

    *used = 0;
    client->turn = TURN;
    client->enough = 0;
    if (client->carrying)
        progress = go_on(client);
    while (progress == DONE && *used < bytes)
        progress = gather(client, (const unsigned char *)data + *used, bytes - *used, used);
    if (progress == BROKEN) {
        *why = client->why;
        return TABLE_BROKEN;
    }
    if (progress == DONE)
        request_rest(&client->reader);
    return progress == MORE ? TABLE_BUSY : TABLE_READY;
}

/* ---- Clients ---------------------------------------------------------------- */

int table_client_is_valid(const struct table_client *client)
{
    return client->valid;
}

struct table_client *table_client_create(struct table *table, void *owner)
{
    struct table_client *client = calloc(1, sizeof *client);

    if (client) {
        client->table = table;
        client->owner = owner;
        client->reader.budget = &table->budget;
        client->reader.most = table->most_request;
        client->waits = (struct link){ &client->waits, &client->waits };
        client->grave = (struct link){ &client->grave, &client->grave };
    }
    return client;
}

/* Values that it sent whole are all set, though it has left; nobody reads the rest. */
static void finish_request(struct table_client *client)
{
    if (request_command(&client->reader) != STORE_MULTI_SET)
        client->carrying = 0;
    while (client->carrying) {
        client->turn = (size_t)-1;
        client->enough = 0;
        if (go_on(client) == BROKEN)
            client->carrying = 0;
    }
}

static void client_free(struct table_client *client)
{
    link_out(&client->grave);
    request_done(&client->reader);
    free(client);
}

void table_client_destroy(struct table_client *client)
{
    if (!client)
        return;
    client->owner = NULL;
    listing_stop(client);
    finish_request(client);
    if (link_alone(&client->waits))
        client_free(client);
    else
        link_last(&client->table->dying, &client->grave);
}

void table_client_drop(struct table_client *client)
{
    if (client)
        client->carrying = 0;
    table_client_destroy(client);
}

int table_work(struct table *table)
{
    size_t turn = TURN;
    const int more = wait_tell(table, &turn);

    if (!more && !link_alone(&table->dying)) {
        struct table_client *client =
            (struct table_client *)((char *)table->dying.next
                                    - offsetof(struct table_client, grave));

        if (!wait_stop(client, TURN))
            client_free(client);
    }
    return budget_sweep(&table->budget) || more || !link_alone(&table->dying)
           || !link_alone(&table->released);
}

/* ---- The table -------------------------------------------------------------- */

struct table *table_create(const struct table_owner *owner, size_t memory, size_t request)
{
    struct table *table = calloc(1, sizeof *table);

    if (!table)
        return NULL;
    table->owner = owner;
    table->budget.limit = memory;
    table->most_request = request;
    table->released = (struct link){ &table->released, &table->released };
    table->dying = (struct link){ &table->dying, &table->dying };
    if (map_init(&table->map, &table->budget) < 0) {
        free(table);
        return NULL;
    }
    return table;
}

void table_destroy(struct table *table)
{
    if (!table)
        return;
    while (table_work(table))
        ;
    map_done(&table->map);
    free(table);
}

int table_has(const struct table *table, const char *wire_key)
{
    const struct entry *entry = map_find(&table->map, (struct bytes){ wire_key, strlen(wire_key) });

    return entry && entry->value;
}

struct budget *table_budget(struct table *table)
{
    return &table->budget;
}

/* Entries with waiters stay, without their values. */
void table_clear(struct table *table)
{
    for (size_t i = 0; i < table->map.bucket_count; i++)
        for (struct entry *entry = table->map.buckets[i], *next; entry; entry = next) {
            next = entry->next;
            listing_forget(table, entry);
            while (entry->queue)
                value_release(entry_pop(&table->map, entry));
            map_drop_if_idle(&table->map, entry);
        }
}
