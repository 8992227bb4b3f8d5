/* SPDX-License-Identifier: Apache-2.0 */
/* members.c - the nodes of a job: in the order in which they came, and by number in a round. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/nodes/coordinator.h"
#include "runtime/util/clock.h"

struct member *members_add(struct coordinator *c, const struct node_join *join,
                           struct store_agent *agent)
{
    struct member *member = calloc(1, sizeof *member);

    if (c->count == c->room) {
        const int room = c->room ? 2 * c->room : 8;
        struct member **grown = realloc(c->members, (size_t)room * sizeof *grown);

        if (grown) {
            c->members = grown;
            c->room = room;
        }
    }
    if (!member || c->count == c->room) {
        free(member);
        return NULL;
    }
    member->agent = agent;
    member->number = join->node;
    member->pid = join->pid;
    member->workers = join->workers;
    member->last_message = clock_ms();
    snprintf(member->host, sizeof member->host, "%s", join->host);
    snprintf(member->role, sizeof member->role, "%s", join->role);
    node_join_name(join, c->is_elastic, member->name, sizeof member->name);
    c->members[c->count++] = member;
    return member;
}

void members_remove(struct coordinator *c, struct member *member)
{
    int i = 0;

    while (c->members[i] != member)
        i++;
    memmove(&c->members[i], &c->members[i + 1], (size_t)(--c->count - i) * sizeof *c->members);
    free(member);
}

struct member *members_find(const struct coordinator *c, const struct store_agent *agent)
{
    for (int i = 1; i < c->count; i++)
        if (c->members[i]->agent == agent)
            return c->members[i];
    return NULL;
}

int members_workers(const struct coordinator *c)
{
    int workers = 0;

    for (int i = 0; i < c->count; i++)
        workers += c->members[i]->workers;
    return workers;
}

/* ---- The order of a round ----------------------------------------------------- */

/* Nodes with a number keep their order: --node-rank, or that of their last round.  Newcomers
 * follow in the natural order of their hosts' names: node2 before node10. */
static int by_number(const void *left, const void *right)
{
    const struct member *a = *(struct member *const *)left, *b = *(struct member *const *)right;
    const int order = strverscmp(a->host, b->host);

    if (a->number >= 0 && b->number >= 0)
        return a->number - b->number;
    if (a->number >= 0 || b->number >= 0)
        return a->number >= 0 ? -1 : 1;
    return order ? order : a->pid - b->pid;
}

int members_rank(struct coordinator *c)
{
    const int count = c->count < c->max ? c->count : c->max;
    struct member **ranked = realloc(c->ranked, (size_t)count * sizeof *ranked);
    int base = 0;

    if (!ranked)
        return -1;
    c->ranked = ranked;
    c->ranked_count = count;
    for (int i = 0; i < c->count; i++)
        c->members[i]->in_round = i < count;
    memcpy(ranked, c->members, (size_t)count * sizeof *ranked);
    qsort(ranked, (size_t)count, sizeof *ranked, by_number);
    for (int i = 0; i < count; i++) {
        ranked[i]->number = i;
        ranked[i]->base = base;
        ranked[i]->ended = ranked[i]->lost = 0;
        ranked[i]->end = (struct round_end){ -1, 0 };
        base += ranked[i]->workers;
    }
    c->world = base;
    return 0;
}

void members_free(struct coordinator *c)
{
    for (int i = 0; i < c->count; i++)
        free(c->members[i]);
    free(c->members);
    free(c->ranked);
}
