/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_store_engine.c - the bytes of four clients, cut anywhere, in any order.
 *
 * The input is a row of pieces: a byte that names a client and a number of bytes (0: another
 * event, see event()), then those bytes.  Clients 0 to 2 have sent the magic already.  Once all
 * have left and the keys are cleared, no memory may be in use. */
#include <stdint.h>
#include <stdlib.h>

#include "runtime/store/engine/engine_internal.h"

#define CLIENTS 4

struct owner {
    struct session *session;
    size_t answers;
    int is_full; /* its reply hook returns 1 */
};

static int take(void *arg, const void *data, size_t bytes)
{
    struct owner *owner = arg;

    for (size_t i = 0; i < bytes; i++) /* every byte must be readable */
        owner->answers += ((const unsigned char *)data)[i] + 1u;
    return owner->is_full;
}

static int take_value(void *arg, struct value *value)
{
    value_hold(value);
    take(arg, value->data, value->size);
    value_release(value);
    return ((struct owner *)arg)->is_full;
}

static const struct reply_hooks reply_hooks = { take, take_value };

static void join(struct engine *engine, struct owner *owner, int valid)
{
    static const unsigned char magic[] = { 0, 0xce, 0xf7, 0x85, 0x3c };
    const char *why;
    size_t used;

    *owner = (struct owner){ .session = session_create(engine, owner) };
    if (owner->session && valid)
        session_feed(owner->session, magic, sizeof magic, &used, &why);
}

static void leave(struct owner *owner)
{
    session_destroy(owner->session);
    owner->session = NULL;
}

static void feed(struct owner *owner, const uint8_t *data, size_t bytes)
{
    enum session_state state = SESSION_READY;
    const char *why = NULL;
    size_t used;

    if (!owner->session)
        return;
    do {
        state = session_feed(owner->session, data, bytes, &used, &why);
        data += used;
        bytes -= used;
    } while (state == SESSION_BUSY && bytes > 0);
    if (state != SESSION_BROKEN)
        return;
    if (!why)
        abort(); /* no refusal without a reason */
    leave(owner);
}

static void event(struct engine *engine, struct owner *owner, int which)
{
    if (which == 0)
        leave(owner);
    else if (which == 1 && !owner->session)
        join(engine, owner, 1);
    else if (which == 2)
        owner->is_full = !owner->is_full;
    else if (which == 3)
        engine_work(engine);
    else if (which == 4)
        engine_clear(engine);
    else
        feed(owner, (const uint8_t *)"", 0); /* a turn */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct engine *engine = engine_create(&reply_hooks, 1 << 20, 1 << 18);
    struct owner owners[CLIENTS];

    if (!engine)
        return 0;
    for (int i = 0; i < CLIENTS; i++)
        join(engine, &owners[i], i < 3);
    while (size > 0) {
        struct owner *owner = &owners[data[0] % CLIENTS];
        size_t bytes = data[0] / CLIENTS;

        data++, size--;
        if (bytes == 0 && size > 0) {
            event(engine, owner, data[0] % 6);
            data++, size--;
            continue;
        }
        bytes = bytes < size ? bytes : size;
        feed(owner, data, bytes);
        data += bytes;
        size -= bytes;
    }
    for (int i = 0; i < CLIENTS; i++)
        leave(&owners[i]);
    while (engine_work(engine))
        ;
    engine_clear(engine);
    if (engine->map.entries != 0 || engine->map.keys != 0 || engine->map.oldest || engine->listing)
        abort();
    if (engine->budget.used != engine->map.bucket_room * sizeof(struct entry *))
        abort(); /* something is not counted back */
    engine_destroy(engine);
    return 0;
}
