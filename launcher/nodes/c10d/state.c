/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - the members of a state. */
#include "launcher/nodes/c10d/state.h"

#include <stdlib.h>
#include <string.h>

void c10d_state_free(struct c10d_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        free((char *)state->members[i].node.addr);
    free(state->members);
    free(state->others);
    *state = (struct c10d_state){ .naive = state->naive };
}

/* Where the node is, or would be. */
static size_t place_of(const struct c10d_state *state, const struct c10d_node *node)
{
    size_t low = 0, high = state->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (c10d_node_compare(&state->members[middle].node, node) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct c10d_member *c10d_find(const struct c10d_state *state, const struct c10d_node *node)
{
    const size_t place = place_of(state, node);

    if (place == state->count || c10d_node_compare(&state->members[place].node, node) != 0)
        return NULL;
    return &state->members[place];
}

static int make_room(struct c10d_state *state)
{
    const size_t room = state->room ? 2 * state->room : 16;
    struct c10d_member *members;

    if (state->count < state->room)
        return 0;
    if (!(members = realloc(state->members, room * sizeof *members)))
        return -1;
    state->members = members;
    state->room = room;
    return 0;
}

struct c10d_member *c10d_member(struct c10d_state *state, const struct c10d_node *node)
{
    struct c10d_member *found = c10d_find(state, node);
    struct c10d_member added = { 0 };
    size_t place;

    if (found)
        return found;
    if (make_room(state) < 0 || c10d_node_copy(&added.node, node) < 0)
        return NULL;
    place = place_of(state, node);
    found = &state->members[place];
    memmove(found + 1, found, (state->count - place) * sizeof *found);
    *found = added;
    state->count++;
    return found;
}

int c10d_is(const struct c10d_state *state, const struct c10d_node *node, unsigned roles)
{
    const struct c10d_member *member = c10d_find(state, node);

    return member && (member->roles & roles);
}

size_t c10d_count(const struct c10d_state *state, unsigned roles)
{
    size_t count = 0;

    for (size_t i = 0; i < state->count; i++)
        count += (state->members[i].roles & roles) != 0;
    return count;
}

void c10d_settle(struct c10d_state *state)
{
    size_t kept = 0;

    for (size_t i = 0; i < state->count; i++) {
        if (state->members[i].roles)
            state->members[kept++] = state->members[i];
        else
            free((char *)state->members[i].node.addr);
    }
    state->count = kept;
}
