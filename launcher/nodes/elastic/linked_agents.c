/* SPDX-License-Identifier: Apache-2.0 */
/* linked_agents.c - who is linked to us, and what they have to hear. */
#include "launcher/nodes/elastic/linked_agents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/clock.h"

#define DEATHS_MOST 65536 /* beyond them nobody is told */

/* ---- Who is there ----------------------------------------------------------- */

struct guest *guests_add(struct guests *guests, struct store_agent *agent, const char *text)
{
    struct guest *guest = calloc(1, sizeof *guest);

    if (!guest)
        return NULL;
    guest->agent = agent;
    guest->heard = clock_ms();
    guest->next = guests->first;
    guests->first = guest;
    if (sscanf(text, "%lld %lld %255s", &guest->pid, &guest->id, guest->addr) < 3)
        guest->pid = 0;
    return guest;
}

struct guest *guests_find(const struct guests *guests, const struct store_agent *agent)
{
    struct guest *guest = guests->first;

    while (guest && guest->agent != agent)
        guest = guest->next;
    return guest;
}

void guests_remove(struct guests *guests, struct guest *guest)
{
    struct guest **at = &guests->first;

    while (*at != guest)
        at = &(*at)->next;
    *at = guest->next;
    free(guest);
}

void guests_free(struct guests *guests)
{
    while (guests->first)
        guests_remove(guests, guests->first);
    free(guests->deaths);
    *guests = (struct guests){ .first = NULL };
}

void guests_tell(const struct guests *guests, int type)
{
    for (struct guest *guest = guests->first; guest; guest = guest->next)
        store_agent_send(guest->agent, type, "", 0);
}

/* ---- Deaths ----------------------------------------------------------------- */

static void tell_death(const struct guest *guest, const struct node_death *dead)
{
    char text[NODE_TEXT];

    node_death_print(dead, text);
    store_agent_send(guest->agent, NODE_DIED, text, strlen(text));
}

static int is_known(const struct guests *guests, const struct node_death *dead)
{
    for (size_t i = 0; i < guests->count; i++)
        if (guests->deaths[i].death.rank == dead->death.rank
            && guests->deaths[i].count >= dead->count
            && !strcmp(guests->deaths[i].generation, dead->generation))
            return 1;
    return 0;
}

static void keep(struct guests *guests, const struct node_death *dead)
{
    if (guests->count == guests->room) {
        const size_t room = guests->room ? 2 * guests->room : 64;
        struct node_death *more =
            room > DEATHS_MOST ? NULL : realloc(guests->deaths, room * sizeof *more);

        if (!more)
            return;
        guests->deaths = more;
        guests->room = room;
    }
    guests->deaths[guests->count++] = *dead;
}

void guests_died(struct guests *guests, const struct guest *from, const struct node_death *dead)
{
    if (is_known(guests, dead))
        return;
    keep(guests, dead);
    for (const struct guest *guest = guests->first; guest; guest = guest->next)
        if (guest != from) {
            tell_death(guest, dead);
            store_agent_flush(guest->agent);
        }
}

int guests_alive(const struct guests *guests, const struct node_workers *workers)
{
    int alive = workers->count;

    for (size_t i = 0; i < guests->count; i++) {
        const struct node_death *dead = &guests->deaths[i];
        const int first = dead->death.rank - workers->base;

        if (first >= 0 && first < workers->count && !strcmp(dead->generation, workers->generation))
            alive -= dead->count;
    }
    return alive;
}

void guests_catch_up(const struct guests *guests, const struct guest *guest)
{
    for (size_t i = 0; i < guests->count; i++)
        if (!strcmp(guests->deaths[i].generation, guest->workers.generation))
            tell_death(guest, &guests->deaths[i]);
}

void guests_new_round(struct guests *guests, const char *generation, const struct nodes *nodes)
{
    size_t kept = 0;

    for (size_t i = 0; i < guests->count; i++)
        if (!strcmp(guests->deaths[i].generation, generation))
            guests->deaths[kept++] = guests->deaths[i];
    guests->count = kept;
    for (size_t i = 0; i < kept; i++)
        node_death_deliver(nodes, &guests->deaths[i]);
}
