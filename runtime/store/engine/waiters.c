/* SPDX-License-Identifier: Apache-2.0 */
/* waiters.c - keeps track of which session waits for which key.
 *
 * A WAIT adds a waiter to each missing key.  When a key is stored, all its waiters move to
 * engine->released in one step.  Each turn removes a few waiters from that list, so a key that ten
 * thousand clients wait for does not delay other clients.  A session gets its reply when its last
 * waiter is removed.  By then each key has been stored, but a key may be deleted again, as in
 * PyTorch. */
#include <stddef.h>

#include "runtime/store/engine/engine_internal.h"

struct store_waiter {
    struct list_node at_entry; /* in entry->waiters, then in engine->released */
    struct list_node own;      /* in session->waits */
    struct entry *entry;
    struct session *session;
    int pushed; /* true if a push to the key's queue released this waiter */
};

static struct store_waiter *waiter_at_entry(struct list_node *node)
{
    return (struct store_waiter *)((char *)node - offsetof(struct store_waiter, at_entry));
}

static struct store_waiter *waiter_of_session(struct list_node *node)
{
    return (struct store_waiter *)((char *)node - offsetof(struct store_waiter, own));
}

/* Adds a waiter to the key.  If a request names a key twice, the second call normally adds nothing,
 * because the key's last waiter is this session's.  If another session added a waiter between the
 * two calls, the key gets a second waiter of this session, so a queue needs two pushes to release
 * the session. */
int waiter_add(struct session *session, struct entry *entry)
{
    struct store_waiter *waiter;

    if (!list_is_empty(&entry->waiters) && waiter_at_entry(entry->waiters.prev)->session == session)
        return 0;
    waiter = budget_alloc(&session->engine->budget, sizeof *waiter);
    if (!waiter)
        return -1;
    *waiter = (struct store_waiter){ .entry = entry, .session = session };
    list_append(&entry->waiters, &waiter->at_entry);
    list_append(&session->waits, &waiter->own);
    entry->waiting++;
    return 0;
}

static void waiter_remove(struct store_waiter *waiter)
{
    struct engine *engine = waiter->session->engine;
    struct entry *entry = waiter->entry;

    list_unlink(&waiter->at_entry);
    list_unlink(&waiter->own);
    budget_free(&engine->budget, waiter, sizeof *waiter);
    entry->waiting--;
    map_drop_if_idle(&engine->map, entry);
}

/* Removes a waiter of a session that will not pop.  If a push released this waiter and the queue
 * still has a value, releases the key's next waiter. */
static void waiter_abandon(struct store_waiter *waiter)
{
    if (waiter->pushed && waiter->entry->queue)
        waiters_release_one(waiter->session->engine, waiter->entry);
    waiter_remove(waiter);
}

int waiters_remove(struct session *session, size_t most)
{
    for (; most > 0 && !list_is_empty(&session->waits); most--)
        waiter_abandon(waiter_of_session(session->waits.next));
    return !list_is_empty(&session->waits);
}

void waiters_release(struct engine *engine, struct entry *entry)
{
    list_splice(&engine->released, &entry->waiters);
}

void waiters_release_one(struct engine *engine, struct entry *entry)
{
    struct store_waiter *waiter;

    if (list_is_empty(&entry->waiters))
        return;
    waiter = waiter_at_entry(entry->waiters.next);
    waiter->pushed = 1;
    list_unlink(&waiter->at_entry);
    list_append(&engine->released, &waiter->at_entry);
}

int waiters_answer(struct engine *engine, size_t *turn)
{
    for (; *turn > 0 && !list_is_empty(&engine->released); --*turn) {
        struct store_waiter *waiter = waiter_at_entry(engine->released.next);
        struct session *session = waiter->session;

        if (session->owner)
            waiter_remove(waiter);
        else
            waiter_abandon(waiter);
        if (list_is_empty(&session->waits) && !session->reading_wait && session->owner)
            reply_u8(session, 0);
    }
    return !list_is_empty(&engine->released);
}
