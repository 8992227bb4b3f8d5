/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeats.c - what was seen of each node, beside what is there now.
 *
 * Who is taken out of our copy still stands in the store until we have something to
 * write, and comes back with the next reading: so nodes are remembered while they are
 * absent, as long as a dead one would be. */
#include "launcher/nodes/c10d/heartbeats.h"

#include <stdlib.h>

void c10d_watch_free(struct c10d_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        free((char *)watch->list[i].node.addr);
    free(watch->list);
    *watch = (struct c10d_watch){ 0 };
}

static int by_node(const void *a, const void *b)
{
    return c10d_node_compare(&((const struct c10d_watched *)a)->node,
                             &((const struct c10d_watched *)b)->node);
}

/* No heartbeat is one that never changes. */
static int64_t heartbeat_of(const struct c10d_member *member)
{
    return member->roles & C10D_BEATS ? member->heartbeat : INT64_MIN;
}

static void see(struct c10d_watched *seen, const struct c10d_member *member, int64_t step)
{
    const int64_t heartbeat = heartbeat_of(member);

    seen->absent = 0;
    seen->still += step;
    if (seen->heartbeat != heartbeat) {
        seen->heartbeat = heartbeat;
        seen->still = 0;
        seen->dropped = 0;
    }
}

/* Who was absent for so long is forgotten. */
static void forget(struct c10d_watch *watch, int64_t patience)
{
    size_t kept = 0;

    for (size_t i = 0; i < watch->count; i++) {
        if (watch->list[i].absent <= patience)
            watch->list[kept++] = watch->list[i];
        else
            free((char *)watch->list[i].node.addr);
    }
    watch->count = kept;
}

/* `step` after the last look.  -1: no memory; some are seen, others not. */
static int look(struct c10d_watch *watch, const struct c10d_state *state, int64_t step)
{
    const size_t known = watch->count;
    struct c10d_watched *list = realloc(watch->list, (known + state->count + 1) * sizeof *list);
    int status = 0;

    if (!list)
        return -1;
    watch->list = list;
    for (size_t i = 0; i < known; i++)
        list[i].absent += step;
    for (size_t i = 0; i < state->count && status == 0; i++) {
        const struct c10d_member *member = &state->members[i];
        const struct c10d_watched key = { .node = member->node };
        struct c10d_watched *seen = bsearch(&key, list, known, sizeof *list, by_node);
        struct c10d_watched *added = &list[watch->count];

        if (seen) {
            see(seen, member, step);
            continue;
        }
        *added = (struct c10d_watched){ .heartbeat = heartbeat_of(member) };
        status = c10d_node_copy(&added->node, &member->node);
        watch->count += status == 0;
    }
    qsort(list, watch->count, sizeof *list, by_node);
    return status;
}

/* Returns how many; the members stay, without a role. */
static int strip_dead(struct c10d_state *state, struct c10d_watch *watch,
                      const struct c10d_node *me, int64_t patience, unsigned *lost)
{
    int dead = 0;

    for (size_t i = 0; i < watch->count; i++) {
        struct c10d_watched *seen = &watch->list[i];
        struct c10d_member *member;

        if (seen->still <= patience || !(member = c10d_find(state, &seen->node))
            || c10d_node_compare(&seen->node, me) == 0)
            continue;
        *lost |= member->roles;
        member->roles = 0;
        if (seen->dropped == 0)
            seen->dropped = 1;
        dead++;
    }
    return dead;
}

int c10d_drop_dead(struct c10d_state *state, struct c10d_watch *watch, const struct c10d_node *me,
                   int64_t monotonic, const struct c10d_settings *settings)
{
    const int64_t patience = settings->keep_alive_interval * settings->keep_alive_max_attempt;
    const int64_t since = monotonic - watch->last_look;
    const int64_t step =
        since < settings->keep_alive_interval ? since : settings->keep_alive_interval;
    unsigned lost = 0;
    int dead;

    if (look(watch, state, step) < 0)
        return -1;
    watch->last_look = monotonic;
    forget(watch, patience);
    dead = strip_dead(state, watch, me, patience, &lost);
    c10d_settle(state);
    if (lost & C10D_PARTICIPANT)
        c10d_left(state, settings);
    return dead;
}

const struct c10d_node *c10d_next_dead(struct c10d_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->list[i].dropped == 1) {
            watch->list[i].dropped = 2;
            return &watch->list[i].node;
        }
    return NULL;
}
