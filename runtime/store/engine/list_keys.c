/* SPDX-License-Identifier: Apache-2.0 */
/* list_keys.c - LIST_KEYS: the keys that are there when it begins, each once.
 *
 * They are walked in the order in which they came, in turns; a key that goes before
 * its turn is told when it goes, one that comes later is not told. */
#include "runtime/store/engine/engine_internal.h"

static void begin_listing(struct table_client *client)
{
    struct table *table = client->table;

    reply_i64(client, table->map.keys);
    client->list_at = table->map.oldest;
    client->list_until = table->map.now;
    client->next_list = table->lists;
    table->lists = client;
    client->at = 1; /* so that it begins once */
}

void listing_stop(struct table_client *client)
{
    struct table_client **link = &client->table->lists;

    while (*link && *link != client)
        link = &(*link)->next_list;
    if (*link)
        *link = client->next_list;
    client->list_at = NULL;
}

static int is_listed(const struct table_client *client)
{
    return client->list_at && client->list_at->since <= client->list_until;
}

enum progress listing_run(struct table_client *client, const struct request_args *args)
{
    (void)args;
    if (client->at == 0)
        begin_listing(client);
    for (; is_listed(client); client->list_at = client->list_at->newer) {
        if (!take_turn(client))
            return MORE;
        reply_blob(client, entry_key(client->list_at));
    }
    listing_stop(client);
    return DONE;
}

void listing_forget(struct table *table, struct entry *entry)
{
    if (!entry->value)
        return;
    for (struct table_client *client = table->lists; client; client = client->next_list) {
        if (is_listed(client) && entry->since >= client->list_at->since
            && entry->since <= client->list_until)
            reply_blob(client, entry_key(entry));
        if (client->list_at == entry)
            client->list_at = entry->newer;
    }
    entry_delete(&table->map, entry);
}
