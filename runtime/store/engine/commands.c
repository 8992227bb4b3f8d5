/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - runs the commands of PyTorch's store.
 *
 * A command with many keys handles at most TURN keys in a turn (take_turn()).  Requests of other
 * clients run between two turns.  PyTorch has two servers, and docs/protocol.md says which of them
 * this server follows if they differ. */
#include <string.h>

#include "runtime/store/engine/engine_internal.h"

#define SMALL 512 /* a reply copies a value up to this size, and refers to a larger value */

typedef enum progress command(struct session *session, const struct request_args *args);

/* ---- Replies ---------------------------------------------------------------- */

static void reply(struct session *session, const void *data, size_t bytes)
{
    if (session->owner && session->engine->hooks->reply(session->owner, data, bytes))
        session->output_full = 1;
}

void reply_u8(struct session *session, uint8_t value)
{
    reply(session, &value, sizeof value);
}

static void reply_i64(struct session *session, int64_t value)
{
    reply(session, &value, sizeof value);
}

static void reply_blob(struct session *session, struct bytes blob)
{
    const uint64_t size = blob.size;
    unsigned char small[8 + SMALL];

    memcpy(small, &size, sizeof size);
    if (blob.size <= SMALL) {
        if (blob.size > 0)
            memcpy(small + 8, blob.data, blob.size);
        reply(session, small, 8 + blob.size);
        return;
    }
    reply(session, small, 8);
    reply(session, blob.data, blob.size);
}

static void reply_value(struct session *session, struct value *value)
{
    const uint64_t size = value ? value->size : 0;

    if (!value || size <= SMALL) {
        reply_blob(session, value ? (struct bytes){ value->data, size } : (struct bytes){ 0 });
        return;
    }
    reply(session, &size, sizeof size);
    if (session->owner && session->engine->hooks->reply_value(session->owner, value))
        session->output_full = 1;
}

/* ---- Failures --------------------------------------------------------------- */

/* Breaks the session because memory is out.  Frees the entry if it is idle.  entry is NULL if there
 * was no memory for the entry. */
static enum progress command_no_memory(struct session *session, struct entry *entry)
{
    if (entry)
        map_drop_if_idle(&session->engine->map, entry);
    session->why = "the store has no memory left for its request (raise --store-memory)";
    return BROKEN;
}

/* ---- Values ----------------------------------------------------------------- */

/* Returns a value with the bytes of a blob, to which the caller gets a hold.  A large blob is not
 * copied.  Returns NULL if out of memory. */
static struct value *command_value_of(struct session *session, const struct request_args *args,
                                      size_t which)
{
    const struct bytes bytes = request_blob(args, which);
    struct value *large = args->blobs[which].value;

    return large ? value_hold(large)
                 : value_create(&session->engine->budget, bytes.data, bytes.size);
}

/* Runs SET, and MULTI_SET with its many pairs. */
static enum progress do_set(struct session *session, const struct request_args *args)
{
    struct engine *engine = session->engine;

    for (; session->at + 1 < args->count; session->at += 2) {
        struct entry *entry;

        if (!take_turn(session))
            return MORE;
        entry = map_get(&engine->map, request_blob(args, session->at));
        if (!entry
            || entry_set(&engine->map, entry, command_value_of(session, args, session->at + 1)) < 0)
            return command_no_memory(session, entry);
        waiters_release(engine, entry);
    }
    return DONE;
}

static enum progress do_append(struct session *session, const struct request_args *args)
{
    struct entry *entry = map_get(&session->engine->map, request_blob(args, 0));

    if (!entry || entry_append(&session->engine->map, entry, request_blob(args, 1)) < 0)
        return command_no_memory(session, entry);
    waiters_release(session->engine, entry);
    return DONE;
}

/* Runs COMPARE_SET.  If the key is missing and the expected value is not empty, the reply is the
 * expected value, as in PyTorch. */
static enum progress do_compare_set(struct session *session, const struct request_args *args)
{
    struct map *map = &session->engine->map;
    struct entry *entry = map_find(map, request_blob(args, 0));
    struct value *now = entry ? entry->value : NULL;
    const struct bytes expected = request_blob(args, 1);

    if (!now && expected.size > 0) {
        reply_blob(session, expected);
        return DONE;
    }
    if (now
        && (now->size != expected.size
            || (expected.size > 0 && memcmp(now->data, expected.data, expected.size)))) {
        reply_value(session, now);
        return DONE;
    }
    entry = map_get(map, request_blob(args, 0));
    if (!entry || entry_set(map, entry, command_value_of(session, args, 2)) < 0)
        return command_no_memory(session, entry);
    reply_value(session, entry->value);
    waiters_release(session->engine, entry);
    return DONE;
}

/* Runs GET, and MULTI_GET with its many keys. */
static enum progress do_get(struct session *session, const struct request_args *args)
{
    for (; session->at < args->count; session->at++) {
        const struct entry *entry;

        if (!take_turn(session))
            return MORE;
        entry = map_find(&session->engine->map, request_blob(args, session->at));
        reply_value(session, entry ? entry->value : NULL);
    }
    return DONE;
}

static enum progress command_add(struct session *session, struct entry *entry, int64_t delta,
                                 int64_t *sum)
{
    const int failed = entry ? entry_add(&session->engine->map, entry, delta, sum) : -2;

    if (failed == -2)
        return command_no_memory(session, entry);
    session->why = "its ADD or BARRIER found a value that is not a number";
    return failed ? BROKEN : DONE;
}

static enum progress do_add(struct session *session, const struct request_args *args)
{
    struct entry *entry = map_get(&session->engine->map, request_blob(args, 0));
    int64_t sum;

    if (command_add(session, entry, args->number, &sum) == BROKEN)
        return BROKEN;
    reply_i64(session, sum);
    waiters_release(session->engine, entry);
    return DONE;
}

static enum progress do_delete(struct session *session, const struct request_args *args)
{
    struct entry *entry = map_find(&session->engine->map, request_blob(args, 0));
    const int present = entry && entry->value;

    if (present) {
        listing_delete_entry(session->engine, entry);
        map_drop_if_idle(&session->engine->map, entry);
    }
    reply_i64(session, present);
    return DONE;
}

static enum progress do_num_keys(struct session *session, const struct request_args *args)
{
    (void)args;
    reply_i64(session, session->engine->map.keys);
    return DONE;
}

static enum progress do_ping(struct session *session, const struct request_args *args)
{
    const uint32_t nonce = (uint32_t)args->number;

    reply(session, &nonce, sizeof nonce);
    return DONE;
}

/* ---- Waiting ---------------------------------------------------------------- */

static enum progress do_check(struct session *session, const struct request_args *args)
{
    for (; session->at < args->count; session->at++) {
        if (!take_turn(session))
            return MORE;
        if (!entry_ready(map_find(&session->engine->map, request_blob(args, session->at))))
            break;
    }
    reply_u8(session, session->at < args->count);
    return DONE;
}

static int end_earlier_waits(struct session *session)
{
    if (!waiters_remove(session, session->turn))
        return 1;
    session->turn = 0;
    return 0;
}

/* Runs WAIT.  Adds a waiter to each missing key.  Replies at the end if no waiter is left, since
 * keys may be stored while the request is running. */
static enum progress do_wait(struct session *session, const struct request_args *args)
{
    if (!session->reading_wait && !end_earlier_waits(session))
        return MORE;
    session->reading_wait = 1;
    for (; session->at < args->count; session->at++) {
        const struct bytes key = request_blob(args, session->at);
        struct entry *entry;

        if (!take_turn(session))
            return MORE;
        entry = map_find(&session->engine->map, key);
        if (entry_ready(entry))
            continue;
        if (!entry)
            entry = map_get(&session->engine->map, key);
        if (!entry || waiter_add(session, entry) < 0)
            return command_no_memory(session, entry);
    }
    session->reading_wait = 0;
    if (list_is_empty(&session->waits))
        reply_u8(session, 0);
    return DONE;
}

static enum progress do_cancel_wait(struct session *session, const struct request_args *args)
{
    (void)args;
    if (!end_earlier_waits(session))
        return MORE;
    reply_u8(session, 1);
    return DONE;
}

/* Runs BARRIER.  The counter of arrivals is not reset, so a later BARRIER with the same key passes
 * at once. */
static enum progress do_barrier(struct session *session, const struct request_args *args)
{
    struct entry *entry;
    int64_t arrived;

    if (!end_earlier_waits(session))
        return MORE;
    entry = map_get(&session->engine->map, request_blob(args, 0));
    if (command_add(session, entry, 1, &arrived) == BROKEN)
        return BROKEN;
    if (arrived < args->number)
        return waiter_add(session, entry) < 0 ? command_no_memory(session, entry) : DONE;
    reply_u8(session, 0);
    waiters_release(session->engine, entry);
    return DONE;
}

/* ---- Queues ----------------------------------------------------------------- */

static enum progress do_queue_push(struct session *session, const struct request_args *args)
{
    struct entry *entry = map_get(&session->engine->map, request_blob(args, 0));

    if (!entry || entry_push(&session->engine->map, entry, command_value_of(session, args, 1)) < 0)
        return command_no_memory(session, entry);
    waiters_release_one(session->engine, entry);
    return DONE;
}

static enum progress do_queue_pop(struct session *session, const struct request_args *args)
{
    struct entry *entry = map_find(&session->engine->map, request_blob(args, 0));
    struct value *value;

    reply_i64(session, entry_queued(entry));
    value = entry ? entry_pop(&session->engine->map, entry) : NULL;
    if (value) {
        reply_value(session, value);
        value_release(value);
        map_drop_if_idle(&session->engine->map, entry);
    }
    return DONE;
}

static enum progress do_queue_len(struct session *session, const struct request_args *args)
{
    const struct entry *entry = map_find(&session->engine->map, request_blob(args, 0));

    reply_i64(session, entry_queued(entry));
    return DONE;
}

/* ---- LIST_KEYS -------------------------------------------------------------- */

/* LIST_KEYS reports each key that exists when the command begins, in the order in which the keys
 * got their values.  If a key is deleted before it was reported, it is reported at that moment.
 * Keys that are added later are not reported. */

static void listing_begin(struct session *session)
{
    struct engine *engine = session->engine;

    reply_i64(session, engine->map.keys);
    session->list_at = engine->map.oldest;
    session->list_until = engine->map.now;
    session->next_listing = engine->listing;
    engine->listing = session;
    session->at = 1; /* LIST_KEYS has begun */
}

void listing_stop(struct session *session)
{
    struct session **at = &session->engine->listing;

    while (*at && *at != session)
        at = &(*at)->next_listing;
    if (*at)
        *at = session->next_listing;
    session->list_at = NULL;
}

static int is_listed(const struct session *session)
{
    return session->list_at && session->list_at->since <= session->list_until;
}

static enum progress do_list_keys(struct session *session, const struct request_args *args)
{
    (void)args;
    if (session->at == 0)
        listing_begin(session);
    for (; is_listed(session); session->list_at = session->list_at->newer) {
        if (!take_turn(session))
            return MORE;
        reply_blob(session, entry_key(session->list_at));
    }
    listing_stop(session);
    return DONE;
}

void listing_delete_entry(struct engine *engine, struct entry *entry)
{
    if (!entry->value)
        return;
    for (struct session *session = engine->listing; session; session = session->next_listing) {
        if (is_listed(session) && entry->since >= session->list_at->since
            && entry->since <= session->list_until)
            reply_blob(session, entry_key(entry));
        if (session->list_at == entry)
            session->list_at = entry->newer;
    }
    entry_delete(&engine->map, entry);
}

/* ---- All commands ----------------------------------------------------------- */

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
    [STORE_LIST_KEYS] = do_list_keys,
    [STORE_BARRIER] = do_barrier,
};

enum progress command_run(struct session *session, const struct request_args *args)
{
    return commands[args->command](session, args);
}
