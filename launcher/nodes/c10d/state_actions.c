/* SPDX-License-Identifier: Apache-2.0 */
/* state_actions.c - what each action does to an agent's copy of the state. */
#include "launcher/nodes/c10d/state_rules.h"

#include <stdlib.h>

/* ---- Ranks -------------------------------------------------------------------- */

static int naturally(const void *a, const void *b)
{
    return c10d_node_natural(&(*(struct c10d_member *const *)a)->node,
                             &(*(struct c10d_member *const *)b)->node);
}

static int by_rank(const void *a, const void *b)
{
    const int64_t x = (*(struct c10d_member *const *)a)->rank;
    const int64_t y = (*(struct c10d_member *const *)b)->rank;

    return (x > y) - (x < y);
}

/* NULL: no memory.  The caller's; one more than `count`, so never of size 0. */
static struct c10d_member **participants(const struct c10d_state *state, size_t *count)
{
    struct c10d_member **list = malloc((state->count + 1) * sizeof *list);

    *count = 0;
    for (size_t i = 0; list && i < state->count; i++)
        if (state->members[i].roles & C10D_PARTICIPANT)
            list[(*count)++] = &state->members[i];
    return list;
}

void c10d_ranks_free(struct c10d_ranks *ranks)
{
    for (size_t i = 0; i < ranks->count; i++)
        free((char *)ranks->nodes[i].addr);
    free(ranks->nodes);
    *ranks = (struct c10d_ranks){ 0 };
}

int c10d_ranks_take(struct c10d_ranks *ranks, const struct c10d_state *state)
{
    struct c10d_ranks taken = { 0 };
    size_t count;
    struct c10d_member **list = participants(state, &count);
    int status = -1;

    if (list && (taken.nodes = malloc((count + 1) * sizeof *taken.nodes))) {
        qsort(list, count, sizeof(struct c10d_member *), by_rank);
        while (taken.count < count
               && c10d_node_copy(&taken.nodes[taken.count], &list[taken.count]->node) == 0)
            taken.count++;
        status = taken.count == count ? 0 : -1;
    }
    free(list);
    if (status < 0) {
        c10d_ranks_free(&taken);
        return -1;
    }
    c10d_ranks_free(ranks);
    *ranks = taken;
    return 0;
}

int c10d_complete(struct c10d_state *state, const struct c10d_ranks *previous)
{
    size_t count;
    struct c10d_member **list = participants(state, &count);
    int64_t next = 0;

    if (!list)
        return -1;
    for (size_t i = 0; i < count; i++)
        list[i]->rank = -1;
    for (size_t i = 0; previous && i < previous->count; i++) {
        struct c10d_member *member = c10d_find(state, &previous->nodes[i]);

        if (member && (member->roles & C10D_PARTICIPANT) && member->rank < 0)
            member->rank = next++;
    }
    qsort(list, count, sizeof(struct c10d_member *), naturally);
    for (size_t i = 0; i < count; i++)
        if (list[i]->rank < 0)
            list[i]->rank = next++;
    free(list);
    state->complete = 1;
    state->has_deadline = 0;
    state->deadline = 0;
    return 0;
}

/* ---- Coming ------------------------------------------------------------------- */

/* NULL: no memory. */
static struct c10d_member *beat(struct c10d_state *state, const struct c10d_node *node,
                                struct c10d_now now)
{
    struct c10d_member *member = c10d_member(state, node);

    if (member) {
        member->roles |= C10D_BEATS;
        member->heartbeat = now.utc;
    }
    return member;
}

int c10d_keep_alive(struct c10d_state *state, const struct c10d_node *node, struct c10d_now now)
{
    return beat(state, node, now) ? 0 : -1;
}

int c10d_add_participant(struct c10d_state *state, const struct c10d_node *node,
                         struct c10d_now now, const struct c10d_settings *settings,
                         const struct c10d_ranks *previous)
{
    struct c10d_member *member = beat(state, node, now);
    size_t count;

    if (!member)
        return -1;
    member->roles = (member->roles & ~(unsigned)C10D_WAITING) | C10D_PARTICIPANT;
    member->rank = 0;
    count = c10d_count(state, C10D_PARTICIPANT);
    if (count == settings->min) {
        state->has_deadline = 1;
        state->deadline = now.utc + settings->last_call_timeout;
    }
    return count == settings->max ? c10d_complete(state, previous) : 0;
}

int c10d_add_waiting(struct c10d_state *state, const struct c10d_node *node, struct c10d_now now)
{
    struct c10d_member *member = beat(state, node, now);

    if (!member)
        return -1;
    member->roles = (member->roles & ~(unsigned)C10D_SPARE) | C10D_WAITING;
    return 0;
}

int c10d_add_spare(struct c10d_state *state, const struct c10d_node *node, struct c10d_now now)
{
    struct c10d_member *member = beat(state, node, now);

    if (!member)
        return -1;
    member->roles |= C10D_SPARE;
    state->no_spares = 0; /* it has the list now */
    return 0;
}

void c10d_close(struct c10d_state *state)
{
    state->closed = 1;
}

/* ---- Going -------------------------------------------------------------------- */

void c10d_left(struct c10d_state *state, const struct c10d_settings *settings)
{
    const size_t count = c10d_count(state, C10D_PARTICIPANT);

    if (state->complete && count == 0) {
        state->complete = 0;
        state->round += state->round < C10D_ROUND_MOST; /* more cannot be read */
    } else if (!state->complete && count < settings->min) {
        state->has_deadline = 0;
        state->deadline = 0;
    }
}

void c10d_remove(struct c10d_state *state, const struct c10d_node *node, unsigned roles,
                 const struct c10d_settings *settings)
{
    struct c10d_member *member = c10d_find(state, node);
    const int left = member && (member->roles & roles & C10D_PARTICIPANT);

    if (!member)
        return;
    member->roles &= ~(roles | C10D_BEATS);
    member->heartbeat = 0;
    if (left)
        member->rank = 0;
    c10d_settle(state);
    if (left)
        c10d_left(state, settings);
}

int c10d_apply(struct c10d_state *state, enum c10d_action action, const struct c10d_node *me,
               struct c10d_now now, const struct c10d_settings *settings,
               const struct c10d_ranks *previous)
{
    switch (action) {
    case C10D_KEEP_ALIVE:
        return c10d_keep_alive(state, me, now);
    case C10D_JOIN:
        return c10d_add_participant(state, me, now, settings, previous);
    case C10D_JOIN_WAIT_LIST:
        return c10d_add_waiting(state, me, now);
    case C10D_JOIN_SPARES:
        return c10d_add_spare(state, me, now);
    case C10D_LEAVE:
        c10d_remove(state, me, C10D_PARTICIPANT, settings);
        return 0;
    case C10D_LEAVE_WAIT_LIST:
        c10d_remove(state, me, C10D_WAITING, settings);
        return 0;
    case C10D_LEAVE_SPARES:
        c10d_remove(state, me, C10D_SPARE, settings);
        return 0;
    case C10D_COMPLETE:
        return c10d_complete(state, previous);
    case C10D_CLOSE:
        c10d_close(state);
        return 0;
    case C10D_FINISH:
    case C10D_SLEEP:
    case C10D_CLOSED_ERROR:
    case C10D_TIMEOUT_ERROR:
    case C10D_QUIT:
        break; /* change nothing */
    }
    return 0;
}
