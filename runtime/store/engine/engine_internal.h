/* SPDX-License-Identifier: Apache-2.0 */
/* engine_internal.h - what the files of the store's engine share: engine.c turns the bytes of
 * clients into requests, commands.c runs the requests, waiters.c keeps the waits. */
#ifndef RUNTIME_STORE_ENGINE_ENGINE_INTERNAL_H
#define RUNTIME_STORE_ENGINE_ENGINE_INTERNAL_H

#include "runtime/store/engine/hash_map.h"
#include "runtime/store/engine/request_parser.h"
#include "runtime/store/engine/engine.h"

/* Keys and requests of one turn; then other clients get their turn.  A turn takes about 100 us, or
 * 400 us where each key is new. */
#define TURN 512

struct engine {
    struct budget budget;
    struct map map;
    size_t most_request;
    const struct reply_hooks *hooks;
    struct list_node released; /* waiters whose key was stored; their sessions wait for the reply */
    struct list_node closing;  /* sessions of clients that left while they waited for many keys */
    struct session *listing;   /* sessions in the middle of LIST_KEYS */
};

enum progress { DONE, MORE, BROKEN };

struct session {
    struct engine *engine;
    void *owner; /* for the reply hooks; NULL: the client has left */
    struct request_reader reader;
    int valid;        /* the client has sent the magic */
    int in_request;   /* in the middle of running a request */
    int output_full;  /* a reply hook wants no more replies now */
    size_t turn;      /* keys and requests left of this turn */
    size_t at;        /* in a request with many keys: the next key */
    int reading_wait; /* a WAIT is half read: no reply yet, even if its waiters are released */
    struct list_node waits;        /* its waiters */
    struct list_node closing_node; /* in engine->closing, when the client has left */
    struct entry *list_at;         /* LIST_KEYS: the next key; lists keys up to list_until */
    uint64_t list_until;
    struct session *next_listing;
    const char *why;
};

/* ---- commands.c ------------------------------------------------------------ */

/* Begins or continues a request.  MORE: the turn is over, or the output is full. */
enum progress command_run(struct session *session, const struct request_args *args);

void reply_u8(struct session *session, uint8_t value);

/* Counts one key or request; 0: the turn is over. */
static inline int take_turn(struct session *session)
{
    if (session->turn == 0 || session->output_full)
        return 0;
    session->turn--;
    return 1;
}

void listing_stop(struct session *session);
/* Deletes the entry's value.  Sessions in the middle of LIST_KEYS still report the key. */
void listing_delete_entry(struct engine *engine, struct entry *entry);

/* ---- waiters.c ------------------------------------------------------------- */

int waiter_add(struct session *session, struct entry *entry); /* -1: no memory */

/* Removes up to `most` of the session's waiters; 1: there are more. */
int waiters_remove(struct session *session, size_t most);

/* Releases all waiters of a key that was stored.  waiters_answer() replies to their sessions. */
void waiters_release(struct engine *engine, struct entry *entry);
/* Releases the first waiter of a queue that got a value, since only one client can pop it. */
void waiters_release_one(struct engine *engine, struct entry *entry);

/* Takes up to *turn released waiters and replies to sessions that wait for no other key; 1: there
 * are more. */
int waiters_answer(struct engine *engine, size_t *turn);

#endif
