/* SPDX-License-Identifier: Apache-2.0 */
/* round_keys.c - set, looked at, waited for.
 *
 * Who waits for another node's key has to stay alive meanwhile, and to notice that the round has
 * fallen apart: then it would never come. */
#include "launcher/nodes/c10d/round_keys.h"

#include <stdio.h>
#include <string.h>

#include "runtime/util/clock.h"

void c10d_key(const struct c10d_session *s, int64_t round, const char *name, char *key, size_t size)
{
    snprintf(key, size, "%s.%lld/%s", s->key, (long long)round, name);
}

enum c10d_end c10d_store_lost(struct c10d_session *s)
{
    snprintf(s->why, sizeof s->why, "the rendezvous at %s was lost: %.250s", s->place,
             ct_last_error());
    return C10D_LOST;
}

enum c10d_end c10d_publish(struct c10d_session *s, const char *name, const char *value)
{
    char key[400];

    c10d_key(s, s->state.round, name, key, sizeof key);
    return ct_store_set(s->store, key, value, strlen(value)) == CT_OK ? C10D_DONE
                                                                      : c10d_store_lost(s);
}

char *c10d_peek(struct c10d_session *s, int64_t round, const char *name)
{
    const char *keys[1];
    char key[400];
    void *value = NULL;
    size_t size;
    int present = 0;

    c10d_key(s, round, name, key, sizeof key);
    keys[0] = key;
    if (ct_store_check(s->store, keys, 1, &present) != CT_OK || !present
        || ct_store_get(s->store, key, -1, &value, &size) != CT_OK)
        return NULL;
    return value;
}

enum c10d_end c10d_wait_for(struct c10d_session *s, const char *const *keys, int count,
                            const char *whose, int64_t timeout)
{
    const int64_t start = clock_us();

    for (;;) {
        int present = 0;
        enum c10d_end end;

        if (ct_store_check(s->store, keys, count, &present) != CT_OK)
            return c10d_store_lost(s);
        if (present)
            return C10D_DONE;
        if (clock_us() - start > timeout) {
            snprintf(s->why, sizeof s->why,
                     "%s said nothing at %s for %lld s (--rdzv-conf=read_timeout=...)", whose,
                     s->place, (long long)(timeout / 1000000));
            return C10D_LATE;
        }
        if (s->rest(s->arg, clock_us() - start < 100000 ? 1 : 20))
            return C10D_STOPPED;
        if ((end = c10d_pulse(s)) != C10D_DONE)
            return end;
        if (s->state.closed || !c10d_world_stands(s))
            return C10D_CHANGED;
    }
}
