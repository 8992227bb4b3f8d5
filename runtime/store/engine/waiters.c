/* SPDX-License-Identifier: Apache-2.0 */
/* waiters.c - who waits for which key.
 *
 * A WAIT leaves a waiter at each key that is missing.  Storing a key moves all
 * its waiters into the ring of released ones, in one step however many they are;
 * from there they are told some at a time, so that a key which ten thousand
 * clients wait for holds up nobody else.  A client is answered when its last
 * waiter is gone: what counts is that each key was stored once since, not that
 * all are there at one moment, as in PyTorch. */
#include <stddef.h>

#include "runtime/store/engine/engine_internal.h"

struct waiter {
    struct link at_entry; /* in entry->waiters, then in table->released */
    struct link own;      /* in client->waits */
    struct entry *entry;
    struct table_client *client;
    int pushed; /* released by a push */
};

static struct waiter *of_entry(struct link *link)
{
    return (struct waiter *)((char *)link - offsetof(struct waiter, at_entry));
}

static struct waiter *of_client(struct link *link)
{
    return (struct waiter *)((char *)link - offsetof(struct waiter, own));
}

/* A key that is named twice is waited for once.  Its first waiter is the last that came,
 * unless the request took several turns and another client waited for the same key in
 * between: then it is told twice, and a queue takes two pushes. */
int wait_for(struct table_client *client, struct entry *entry)
{
    struct waiter *waiter;

    if (!link_alone(&entry->waiters) && of_entry(entry->waiters.prev)->client == client)
        return 0;
    waiter = budget_alloc(&client->table->budget, sizeof *waiter);

    if (!waiter)
        return -1;
    *waiter = (struct waiter){ .entry = entry, .client = client };
    link_last(&entry->waiters, &waiter->at_entry);
    link_last(&client->waits, &waiter->own);
    entry->waiting++;
    return 0;
}

static void waiter_remove(struct waiter *waiter)
{
    struct table *table = waiter->client->table;
    struct entry *entry = waiter->entry;

    link_out(&waiter->at_entry);
    link_out(&waiter->own);
    budget_free(&table->budget, waiter, sizeof *waiter);
    entry->waiting--;
    map_drop_if_idle(&table->map, entry);
}

/* Its client will not pop what was pushed: another may. */
static void give_up(struct waiter *waiter)
{
    if (waiter->pushed && waiter->entry->queue)
        wait_over_one(waiter->client->table, waiter->entry);
    waiter_remove(waiter);
}

int wait_stop(struct table_client *client, size_t most)
{
    for (; most > 0 && !link_alone(&client->waits); most--)
        give_up(of_client(client->waits.next));
    return !link_alone(&client->waits);
}

void wait_over(struct table *table, struct entry *entry)
{
    link_move(&table->released, &entry->waiters);
}

void wait_over_one(struct table *table, struct entry *entry)
{
    struct waiter *waiter;

    if (link_alone(&entry->waiters))
        return;
    waiter = of_entry(entry->waiters.next);
    waiter->pushed = 1;
    link_out(&waiter->at_entry);
    link_last(&table->released, &waiter->at_entry);
}

int wait_tell(struct table *table, size_t *turn)
{
    for (; *turn > 0 && !link_alone(&table->released); --*turn) {
        struct waiter *waiter = of_entry(table->released.next);
        struct table_client *client = waiter->client;

        if (client->owner)
            waiter_remove(waiter);
        else
            give_up(waiter);
        if (link_alone(&client->waits) && !client->asking && client->owner)
            reply_u8(client, 0);
    }
    return !link_alone(&table->released);
}
