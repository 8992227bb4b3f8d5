/* SPDX-License-Identifier: Apache-2.0 */
/* wire_wait.c - waiting for keys.
 *
 * The server has no timeouts: a wait that runs into its deadline is cancelled, the
 * keys that are missing are asked for and named, and then the connection is in step
 * again. */
#include <stdio.h>

#include "runtime/clock.h"
#include "runtime/store/wire.h"

enum {
    MOST_LOOKED_FOR = 64, /* keys of a wait that timed out */
    MOST_NAMED = 8
};

/* The server answers 1; before it 0, if the wait had just been released. */
static ct_status cancel_wait(struct wire *w, int *released)
{
    uint8_t answer = 0;
    ct_status status;

    wire_command(w, STORE_CANCEL_WAIT);
    status = wire_ask(w, &answer, 1);
    *released = status == CT_OK && answer == 0;
    if (*released)
        status = wire_get(w, &answer, 1);
    if (status == CT_OK && answer != 1)
        status =
            wire_break(w, CT_ERR_PEER, "it answered %d instead of 1 to a cancelled wait", answer);
    return status;
}

static ct_status missing(const struct wire *w, const struct bytes *keys, int count,
                         const uint8_t *absent, int looked_for, int64_t waited)
{
    char names[MOST_NAMED * (QUOTED_SIZE + 2) + 1] = "", others[64] = "", key[QUOTED_SIZE];
    size_t used = 0;
    int found = 0;

    for (int i = 0; i < looked_for; i++)
        if (absent[i] && found++ < MOST_NAMED)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                     found > 1 ? ", " : "", wire_quote(keys[i], key));
    if (count > looked_for)
        snprintf(others, sizeof others, "%sperhaps some of %d others", found ? " and " : "",
                 count - looked_for);
    else if (found > MOST_NAMED)
        snprintf(others, sizeof others, " and %d other%s", found - MOST_NAMED,
                 found > MOST_NAMED + 1 ? "s" : "");
    return ct_fail(CT_ERR_TIMEOUT, "the store at %s: key%s %s%s %s not there after %lld ms",
                   w->where, found == 1 ? "" : "s", names, others,
                   found == 1 && !*others ? "is" : "are", (long long)waited);
}

/* All checks go out together: one round trip.  CT_OK: they came at the last moment. */
static ct_status look_for(struct wire *w, const struct bytes *keys, int count, int64_t waited)
{
    const int looked_for = count < MOST_LOOKED_FOR ? count : MOST_LOOKED_FOR;
    uint8_t absent[MOST_LOOKED_FOR] = { 1 };
    ct_status status = CT_OK;
    int found = 0;

    for (int i = 0; i < looked_for && count > 1; i++) {
        wire_command(w, STORE_CHECK);
        wire_put_keys(w, &keys[i], 1);
    }
    if (count > 1)
        status = wire_ask(w, absent, (size_t)looked_for);
    for (int i = 0; i < looked_for; i++)
        found += absent[i] == 0;
    if (status != CT_OK || found == count)
        return status;
    return missing(w, keys, count, absent, looked_for, waited);
}

ct_status wire_wait(struct wire *w, const struct bytes *keys, int count, int64_t deadline)
{
    const int64_t start = clock_ms();
    uint8_t answer = 0;
    int released;
    ct_status status;

    wire_command(w, STORE_WAIT);
    wire_put_keys(w, keys, count);
    status = wire_send(w);
    if (status != CT_OK)
        return status;
    if (wire_ready(w, deadline)) {
        status = wire_get(w, &answer, 1);
        if (status == CT_OK && answer != 0)
            status = wire_break(w, CT_ERR_PEER, "it answered %d instead of 0", answer);
        return status;
    }
    status = cancel_wait(w, &released);
    if (status != CT_OK || released)
        return status;
    return look_for(w, keys, count, clock_ms() - start);
}
