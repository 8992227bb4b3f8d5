/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - the sessions of the store's clients.  A session runs a client's requests one at a
 * time.
 *
 * request_parser.c collects the bytes of a request.  commands.c runs the request when it is
 * complete, so an incomplete request has no effect.  A request that needs more than one turn
 * continues with the next session_feed(). */
#include "runtime/store/engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/store/engine/engine_internal.h"

/* ---- Requests --------------------------------------------------------------- */

static enum progress run_request(struct session *session)
{
    struct request_args args;

    request_state(&session->reader, &args);
    if (!session->valid) {
        session->valid = args.command == STORE_VALIDATE && args.number == STORE_MAGIC;
        session->why = "it did not begin with PyTorch's magic";
        return session->valid ? DONE : BROKEN;
    }
    if (args.command == STORE_VALIDATE) {
        session->why = "it sent a command that does not exist";
        return BROKEN;
    }
    return command_run(session, &args);
}

static enum progress continue_request(struct session *session)
{
    const enum progress progress = run_request(session);

    session->in_request = progress == MORE;
    if (progress != DONE)
        return progress;
    request_next(&session->reader);
    session->at = 0;
    waiters_answer(session->engine, &session->turn);
    return take_turn(session) ? DONE : MORE;
}

/* Takes bytes until the next request is complete, and then runs the request.  Returns DONE if more
 * bytes are needed. */
static enum progress engine_gather(struct session *session, const unsigned char *data, size_t bytes,
                                   size_t *used)
{
    struct request_args args;

    *used += request_read(&session->reader, data, bytes);
    /* Before the magic number, only VALIDATE is collected; others could fill the memory. */
    if (!session->valid && request_command(&session->reader) != STORE_VALIDATE) {
        session->why = "it did not begin with PyTorch's magic";
        return BROKEN;
    }
    switch (request_state(&session->reader, &args)) {
    case REQUEST_WHOLE:
        return continue_request(session);
    case REQUEST_BAD:
        session->why = session->reader.why;
        return BROKEN;
    case REQUEST_PARTIAL:
        break;
    }
    return DONE;
}

enum session_state session_feed(struct session *session, const void *data, size_t bytes,
                                size_t *used, const char **why)
{
    enum progress progress = DONE;

    *used = 0;
    session->turn = TURN;
    session->output_full = 0;
    if (session->in_request)
        progress = continue_request(session);
    while (progress == DONE && *used < bytes)
        progress = engine_gather(session, (const unsigned char *)data + *used, bytes - *used, used);
    if (progress == BROKEN) {
        *why = session->why;
        return SESSION_BROKEN;
    }
    if (progress == DONE)
        request_trim(&session->reader);
    return progress == MORE ? SESSION_BUSY : SESSION_READY;
}

/* ---- Sessions --------------------------------------------------------------- */

int session_is_valid(const struct session *session)
{
    return session->valid;
}

struct session *session_create(struct engine *engine, void *owner)
{
    struct session *session = calloc(1, sizeof *session);

    if (session) {
        session->engine = engine;
        session->owner = owner;
        session->reader.budget = &engine->budget;
        session->reader.most = engine->most_request;
        list_init(&session->waits);
        list_init(&session->closing_node);
    }
    return session;
}

/* Ends the request of a client that has left.  Runs a MULTI_SET to its end.  Drops other requests,
 * since those that can be partly done leave no effect. */
static void finish_request(struct session *session)
{
    if (request_command(&session->reader) != STORE_MULTI_SET)
        session->in_request = 0;
    while (session->in_request) {
        session->turn = (size_t)-1;
        session->output_full = 0;
        if (continue_request(session) == BROKEN)
            session->in_request = 0;
    }
}

static void session_free(struct session *session)
{
    list_unlink(&session->closing_node);
    request_free(&session->reader);
    free(session);
}

void session_destroy(struct session *session)
{
    if (!session)
        return;
    session->owner = NULL;
    listing_stop(session);
    finish_request(session);
    if (list_is_empty(&session->waits))
        session_free(session);
    else
        list_append(&session->engine->closing, &session->closing_node);
}

void session_abort(struct session *session)
{
    if (session)
        session->in_request = 0;
    session_destroy(session);
}

int engine_work(struct engine *engine)
{
    size_t turn = TURN;
    const int more = waiters_answer(engine, &turn);

    if (!more && !list_is_empty(&engine->closing)) {
        struct session *session = (struct session *)((char *)engine->closing.next
                                                     - offsetof(struct session, closing_node));

        if (!waiters_remove(session, TURN))
            session_free(session);
    }
    return budget_sweep(&engine->budget) || more || !list_is_empty(&engine->closing)
           || !list_is_empty(&engine->released);
}

/* ---- The engine ------------------------------------------------------------- */

struct engine *engine_create(const struct reply_hooks *hooks, size_t memory, size_t request)
{
    struct engine *engine = calloc(1, sizeof *engine);

    if (!engine)
        return NULL;
    engine->hooks = hooks;
    engine->budget.limit = memory;
    engine->most_request = request;
    list_init(&engine->released);
    list_init(&engine->closing);
    if (map_init(&engine->map, &engine->budget) < 0) {
        free(engine);
        return NULL;
    }
    return engine;
}

void engine_destroy(struct engine *engine)
{
    if (!engine)
        return;
    while (engine_work(engine))
        ;
    map_done(&engine->map);
    free(engine);
}

int engine_has(const struct engine *engine, const char *wire_key)
{
    const struct entry *entry =
        map_find(&engine->map, (struct bytes){ wire_key, strlen(wire_key) });

    return entry && entry->value;
}

struct budget *engine_budget(struct engine *engine)
{
    return &engine->budget;
}

/* Deletes all values and queues.  Keeps entries that have waiters. */
void engine_clear(struct engine *engine)
{
    for (size_t i = 0; i < engine->map.bucket_count; i++)
        for (struct entry *entry = engine->map.buckets[i], *next; entry; entry = next) {
            next = entry->next;
            listing_delete_entry(engine, entry);
            while (entry->queue)
                value_release(entry_pop(&engine->map, entry));
            map_drop_if_idle(&engine->map, entry);
        }
}
