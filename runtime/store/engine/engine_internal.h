/* SPDX-License-Identifier: Apache-2.0 */
/* engine_internal.h - the structs of the store's engine, and the functions by which its files call
 * each other.  engine.c turns the bytes of clients into requests.  commands.c runs the requests.
 * waiters.c keeps track of the waits. */
#ifndef RUNTIME_STORE_ENGINE_ENGINE_INTERNAL_H
#define RUNTIME_STORE_ENGINE_ENGINE_INTERNAL_H

#include "runtime/store/engine/hash_map.h"
#include "runtime/store/engine/request_parser.h"
#include "runtime/store/engine/engine.h"

/* Most keys and requests that a turn handles before other clients get a turn.  A turn takes about
 * 100 us, or 400 us if each key is new. */
#define TURN 512

struct engine {
    struct budget budget;
    struct map map;
    size_t most_request;
    const struct reply_hooks *hooks;
    struct list_node released; /* waiters whose key was stored; their session is not told yet */
    struct list_node closing;  /* sessions whose client left and that still have waiters */
    struct session *listing;   /* sessions that are running LIST_KEYS */
};

enum progress { DONE, MORE, BROKEN };

struct session {
    struct engine *engine;
    void *owner; /* argument of the reply hooks; NULL if the client has left */
    struct request_reader reader;
    int valid;              /* true if the client has sent the magic number */
    int in_request;         /* true while a request is partly done */
    int output_full;        /* true if a reply hook has asked the session to pause */
    size_t turn;            /* keys and requests that this turn may still handle */
    size_t at;              /* index of the next key in a request with many keys */
    int reading_wait;       /* true while a WAIT is partly done, which must not get a reply yet */
    struct list_node waits; /* the waiters of this session */
    struct list_node closing_node; /* in engine->closing after the client has left */
    struct entry *list_at;         /* the next key that LIST_KEYS reports */
    uint64_t list_until;           /* LIST_KEYS reports keys with entry->since up to this */
    struct session *next_listing;
    const char *why; /* says how the client broke the protocol */
};

/* ---- commands.c ------------------------------------------------------------ */

/* Begins or continues a request.  Returns MORE if the turn is over or the output is full. */
enum progress command_run(struct session *session, const struct request_args *args);

void reply_u8(struct session *session, uint8_t value);

/* Counts a key or request of this turn.  Returns 0 if the turn is over or the output is full. */
static inline int take_turn(struct session *session)
{
    if (session->turn == 0 || session->output_full)
        return 0;
    session->turn--;
    return 1;
}

void listing_stop(struct session *session);
/* Deletes the entry's value.  Sessions that are running LIST_KEYS still report the key. */
void listing_delete_entry(struct engine *engine, struct entry *entry);

/* ---- waiters.c ------------------------------------------------------------- */

int waiter_add(struct session *session, struct entry *entry); /* returns -1 if out of memory */

/* Removes up to `most` of the session's waiters.  Returns 1 if some are left. */
int waiters_remove(struct session *session, size_t most);

/* Releases all waiters of a key that was stored.  waiters_answer() replies to their sessions. */
void waiters_release(struct engine *engine, struct entry *entry);
/* Releases the first waiter of a queue that got a value, since only one client can pop it. */
void waiters_release_one(struct engine *engine, struct entry *entry);

/* Removes up to *turn released waiters, and replies to each session that then has no waiter left.
 * Subtracts the removed waiters from *turn.  Returns 1 if released waiters are left. */
int waiters_answer(struct engine *engine, size_t *turn);

#endif
