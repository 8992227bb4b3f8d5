/* SPDX-License-Identifier: Apache-2.0 */
/* engine_internal.h - what the files of the store's engine share: store/engine/session.c feeds
 * clients, store/engine/commands.c and store/engine/list_keys.c carry out what they ask,
 * store/engine/waiters.c keeps who waits. */
#ifndef RUNTIME_STORE_ENGINE_ENGINE_INTERNAL_H
#define RUNTIME_STORE_ENGINE_ENGINE_INTERNAL_H

#include "runtime/store/engine/hash_map.h"
#include "runtime/store/engine/request_parser.h"
#include "runtime/store/engine/session.h"

/* Keys and requests that are looked at before others get their turn: some 100 us, or 400
 * where each key is new. */
#define TURN 512

struct table {
    struct budget budget;
    struct map map;
    size_t most_request;
    const struct table_owner *owner;
    struct link released;       /* waits that are over; their clients are not told yet */
    struct link dying;          /* clients that left while they waited for very many keys */
    struct table_client *lists; /* those in the middle of LIST_KEYS */
};

enum progress { DONE, MORE, BROKEN };

struct table_client {
    struct table *table;
    void *owner; /* NULL: it has left */
    struct request_reader reader;
    int valid;         /* has shown the magic */
    int carrying;      /* in the middle of a request */
    int enough;        /* its owner wants no more answers now */
    size_t turn;       /* keys it may still look at before the others */
    size_t at;         /* in a request with many keys: the next one */
    int answer;        /* of a CHECK so far */
    int asking;        /* a WAIT is still being read: no answer yet */
    struct link waits; /* its waiters; and, when it has left, the way into table->dying */
    struct link grave;
    struct entry *list_at; /* LIST_KEYS: the next key, of those up to list_until */
    uint64_t list_until;
    struct table_client *next_list;
    const char *why;
};

/* ---- store/engine/commands.c ------------------------------------------------------- */

/* Carries on with a request.  MORE: its turn is over, or its owner had enough. */
enum progress command_run(struct table_client *client, const struct request_args *args);

void reply_u8(struct table_client *client, uint8_t value);
void reply_i64(struct table_client *client, int64_t value);
void reply_blob(struct table_client *client, struct bytes blob);

/* One more may be looked at; 0: it is the others' turn. */
static inline int take_turn(struct table_client *client)
{
    if (client->turn == 0 || client->enough)
        return 0;
    client->turn--;
    return 1;
}

/* ---- store/engine/list_keys.c -------------------------------------------------------- */

enum progress listing_run(struct table_client *client, const struct request_args *args);
void listing_stop(struct table_client *client);
/* The entry loses its value; who is listing the keys still gets to know it. */
void listing_forget(struct table *table, struct entry *entry);

/* ---- store/engine/waiters.c ----------------------------------------------------------- */

int wait_for(struct table_client *client, struct entry *entry); /* -1: no memory */

/* Forgets up to `most` of the client's waits; 1: there are more. */
int wait_stop(struct table_client *client, size_t most);

/* The entry was stored: all its waits are over.  Whoever waited is told by and by. */
void wait_over(struct table *table, struct entry *entry);
/* Something was pushed: that of one client is, since only one can pop. */
void wait_over_one(struct table *table, struct entry *entry);

/* Tells as many as the turn has left; 1: there are more. */
int wait_tell(struct table *table, size_t *turn);

/* ---- Rings ------------------------------------------------------------------ */

static inline int link_alone(const struct link *ring)
{
    return ring->next == ring;
}

static inline void link_out(struct link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    *link = (struct link){ link, link };
}

static inline void link_last(struct link *ring, struct link *link)
{
    *link = (struct link){ ring, ring->prev };
    ring->prev->next = link;
    ring->prev = link;
}

/* All of `from` behind the last of `ring`. */
static inline void link_move(struct link *ring, struct link *from)
{
    if (link_alone(from))
        return;
    from->next->prev = ring->prev;
    ring->prev->next = from->next;
    from->prev->next = ring;
    ring->prev = from->prev;
    *from = (struct link){ from, from };
}

#endif
