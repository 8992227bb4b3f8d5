/* SPDX-License-Identifier: Apache-2.0 */
/* elastic_links.c - what the ctruns of a dynamic job say to each other.
 *
 * All are linked to the one that hosts the rendezvous: it has guests, each guest a link to it.
 * Both ways they tell that there is something new in the store, so that nobody has to ask it again
 * and again, and which workers have died.  A link that breaks means that the ctrun at its end is
 * gone; one that falls silent, that it stands still. */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "launcher/nodes/elastic/elastic.h"
#include "runtime/util/clock.h"

#define LOOK_EVERY_MS 20 /* at most: each look of a guest is a request for the whole state */

/* ---- Something new in the store ----------------------------------------------- */

static void on_look(evutil_socket_t fd, short what, void *arg)
{
    struct dynamic *d = arg;

    (void)fd;
    (void)what;
    d->looked = clock_ms();
    guests_tell(&d->guests, NODE_LOOK);
}

/* All should look: the host tells its guests, a guest tells the host. */
void dynamic_spread(struct dynamic *d)
{
    const int64_t wait = d->looked + LOOK_EVERY_MS - clock_ms();
    const struct timeval later = { 0, 1000 * (wait > 0 ? wait : 0) };

    link_tell(&d->host, NODE_LOOK, "%s", "");
    if (d->guests.first && !event_pending(&d->look, EV_TIMEOUT, NULL))
        event_add(&d->look, &later);
}

/* ---- Deaths ------------------------------------------------------------------ */

void dynamic_died(struct nodes *nodes, const struct control_death *death)
{
    struct dynamic *d = (struct dynamic *)nodes;
    struct node_death dead = { .count = 1, .death = *death };
    char text[NODE_TEXT];

    snprintf(dead.generation, sizeof dead.generation, "%s", d->ranks.generation);
    node_death_print(&dead, text);
    link_tell(&d->host, NODE_DIED, "%s", text);
    link_flush(&d->host);
    if (d->store)
        guests_died(&d->guests, NULL, &dead);
}

void dynamic_lose_all_others(struct dynamic *d)
{
    const struct node_workers *own = &d->ranks;
    const int after = own->base + own->count;
    struct node_death dead = node_host_lost(own->generation, 0, own->base, "", CONTROL_CLOSED);

    node_death_deliver(&d->nodes, &dead);
    dead = node_host_lost(own->generation, after, d->world - after, "", CONTROL_CLOSED);
    node_death_deliver(&d->nodes, &dead);
}

/* A guest speaks of its own workers. */
static void take_guests_death(struct dynamic *d, const struct guest *guest,
                              const struct node_death *dead)
{
    const int first = dead->death.rank - guest->workers.base;

    if (strcmp(dead->generation, guest->workers.generation) != 0 || first < 0
        || dead->count > guest->workers.count - first)
        return;
    guests_died(&d->guests, guest, dead);
    if (!strcmp(dead->generation, d->ranks.generation))
        node_death_deliver(&d->nodes, dead);
}

/* ---- Guests ------------------------------------------------------------------ */

static void lose_guests_workers(struct dynamic *d, struct guest *guest, int how)
{
    const struct node_workers *w = &guest->workers;
    const struct node_death dead =
        node_host_lost(w->generation, w->base, w->count, guest->addr, how);

    struct node_steps nothing = { .step = 0 };

    if (w->count > 0 && guests_alive(&d->guests, w) > 0)
        take_guests_death(d, guest, &dead);
    memcpy(nothing.generation, w->generation, sizeof nothing.generation);
    dynamic_take_closed(d, guest, &nothing);
    guest->workers.count = 0;
}

static void on_guest_said(void *arg, struct store_agent *agent, int type, const void *data,
                          size_t bytes)
{
    struct dynamic *d = arg;
    struct guest *guest = guests_find(&d->guests, agent);
    struct node_workers workers;
    struct node_death dead;
    struct node_wish wish;
    struct node_steps closed;
    char text[NODE_TEXT];

    node_text(text, sizeof text, data, bytes);
    if (guest)
        guest->heard = clock_ms();
    if (type == NODE_LOOK) {
        c10d_agent_look(d->agent);
        dynamic_spread(d);
    } else if (type == NODE_HERE && !guest) {
        guests_add(&d->guests, agent, text);
    } else if (type == NODE_WORKERS && guest && node_workers_read(text, &workers) == 0) {
        guest->workers = workers;
        guests_catch_up(&d->guests, guest);
        dynamic_tell_stop(d, guest);
    } else if (type == NODE_DIED && guest && node_death_read(text, &dead) == 0) {
        take_guests_death(d, guest, &dead);
    } else if (type == NODE_WISH && guest && node_wish_read(text, &wish) == 0
               && !strcmp(wish.generation, guest->workers.generation)) {
        dynamic_ask_guests(d, &wish);
    } else if (type == NODE_CLOSED && guest && node_steps_read(text, &closed) == 0) {
        dynamic_take_closed(d, guest, &closed);
    } else if ((type == NODE_TRACE || type == NODE_CLOCK) && guest && bytes > 0) {
        d->nodes.hooks->told(d->nodes.job, agent, type, data, bytes);
    }
}

static void on_guest_left(void *arg, struct store_agent *agent)
{
    struct dynamic *d = arg;
    struct guest *guest = guests_find(&d->guests, agent);
    struct c10d_node node;

    if (!guest)
        return;
    d->nodes.hooks->told(d->nodes.job, agent, NODE_TRACE, NULL, 0);
    node = (struct c10d_node){ guest->addr, guest->pid, guest->id };
    if (!d->is_over)
        lose_guests_workers(d, guest, CONTROL_CLOSED);
    if (guest->pid && !d->is_over)
        c10d_agent_dead(d->agent, &node);
    guests_remove(&d->guests, guest);
}

const struct store_agent_hooks dynamic_guest_hooks = { .said = on_guest_said,
                                                       .left = on_guest_left };

/* ---- The host ---------------------------------------------------------------- */

static void on_host_said(void *arg, int type, const char *text)
{
    struct dynamic *d = arg;
    struct node_death dead;
    struct node_wish wish;
    struct node_steps stop;

    if (type == NODE_LOOK)
        c10d_agent_look(d->agent);
    else if (type == NODE_CLOSE && node_wish_read(text, &wish) == 0)
        dynamic_answer_how_far(d, &wish);
    else if (type == NODE_STOP_AT && node_steps_read(text, &stop) == 0)
        dynamic_take_stop(d, &stop);
    else if (type == NODE_DIED && node_death_read(text, &dead) == 0
             && !strcmp(dead.generation, d->ranks.generation))
        node_death_deliver(&d->nodes, &dead);
    else if (type == NODE_CLOCK)
        d->nodes.hooks->told(d->nodes.job, NULL, type, text, strlen(text));
}

/* The thread has a connection of its own, and is about to notice. */
static void on_link_broke(void *arg, const char *why)
{
    struct dynamic *d = arg;

    (void)why;
    c10d_agent_look(d->agent);
    if (d->closed) /* ranks wait for what nobody tells any more */
        dynamic_stop_alone(d);
}

static const struct link_hooks link_hooks = { .said = on_host_said, .broke = on_link_broke };

void dynamic_take_links(struct dynamic *d, const struct c10d_news *news)
{
    const struct c10d_node *me = c10d_agent_node(d->agent);

    if (news->host_link >= 0 && link_start(&d->host, d->base, news->host_link) == 0) {
        d->linked = 1;
        link_tell(&d->host, NODE_HERE, "%lld %lld %s", (long long)me->pid, (long long)me->local_id,
                  me->addr);
    }
    if (news->store_link >= 0)
        link_start(&d->workers, d->base, news->store_link);
}

/* ---- Both -------------------------------------------------------------------- */

/* A guest that is frozen keeps its link; that it has left the job, the rendezvous finds out. */
static void on_beat(void *arg)
{
    struct dynamic *d = arg;

    link_tell(&d->host, NODE_BEAT, "%s", "");
    for (struct guest *guest = d->guests.first; guest; guest = guest->next)
        if (pulse_is_silent(&d->pulse, guest->heard))
            lose_guests_workers(d, guest, CONTROL_SILENT);
}

void dynamic_links_setup(struct dynamic *d)
{
    link_setup(&d->host, &link_hooks, d);
    link_setup(&d->workers, &link_hooks, d);
    evtimer_assign(&d->look, d->base, on_look, d);
    pulse_setup(&d->pulse, d->base, &d->options->rdzv_conf, 0, on_beat, d);
}

void dynamic_links_close(struct dynamic *d)
{
    link_close(&d->host);
    link_close(&d->workers);
    event_del(&d->look);
    pulse_stop(&d->pulse);
}
