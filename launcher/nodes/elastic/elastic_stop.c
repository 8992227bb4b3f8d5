/* SPDX-License-Identifier: Apache-2.0 */
/* elastic_stop.c - the ranks of a dynamic job stop at the same step.
 *
 * A guest tells its wish to the host.  That one counts (stop_vote.h): it asks the guests that have
 * workers in the round how far those came, and tells the step at which all stop.  Of a node that is
 * the only one, its ctrun counts; who has lost the host stops alone; where torchrun hosts, nobody
 * can count. */
#include <stdio.h>
#include <string.h>

#include "launcher/nodes/elastic/elastic.h"

static int is_ours(const struct dynamic *d, const char *generation)
{
    return d->running && !strcmp(generation, d->ranks.generation);
}

void dynamic_ask_guests(struct dynamic *d, const struct node_wish *wish)
{
    const uint64_t here =
        is_ours(d, wish->generation) ? d->nodes.hooks->close_steps(d->nodes.job) : 0;
    char text[NODE_TEXT];

    if (!vote_begin(&d->vote, wish, here))
        return;
    snprintf(text, sizeof text, "%s %d", wish->generation, wish->for_good);
    for (struct guest *guest = d->guests.first; guest; guest = guest->next) {
        guest->closing =
            guest->workers.count > 0 && !strcmp(guest->workers.generation, wish->generation);
        if (!guest->closing)
            continue;
        store_agent_send(guest->agent, NODE_CLOSE, text, strlen(text));
        vote_expect(&d->vote);
    }
    vote_go(&d->vote);
}

void dynamic_take_closed(struct dynamic *d, struct guest *guest, const struct node_steps *closed)
{
    if (!guest->closing)
        return;
    guest->closing = 0;
    vote_take(&d->vote, closed);
}

void dynamic_tell_stop(const struct dynamic *d, const struct guest *guest)
{
    const struct node_steps result = vote_result(&d->vote);
    char text[NODE_TEXT];

    node_steps_print(&result, text);
    if (d->vote.state == VOTE_DECIDED && !strcmp(guest->workers.generation, result.generation))
        store_agent_send(guest->agent, NODE_STOP_AT, text, strlen(text));
}

void dynamic_take_stop(struct dynamic *d, const struct node_steps *stop)
{
    if (!is_ours(d, stop->generation))
        return;
    d->for_good |= stop->for_good;
    d->closed = 0;
    d->nodes.hooks->stop_at(d->nodes.job, stop->step, stop->for_good);
}

void dynamic_decided(void *arg)
{
    struct dynamic *d = arg;
    const struct node_steps result = vote_result(&d->vote);

    for (const struct guest *guest = d->guests.first; guest; guest = guest->next)
        dynamic_tell_stop(d, guest);
    dynamic_take_stop(d, &result);
}

void dynamic_answer_how_far(struct dynamic *d, const struct node_wish *wish)
{
    struct node_steps closed = { .for_good = wish->for_good };
    char text[NODE_TEXT];

    memcpy(closed.generation, wish->generation, sizeof closed.generation);
    if (is_ours(d, wish->generation)) {
        closed.step = d->nodes.hooks->close_steps(d->nodes.job);
        d->closed = 1;
    }
    node_steps_print(&closed, text);
    link_tell(&d->host, NODE_CLOSED, "%s", text);
}

void dynamic_stop_alone(struct dynamic *d)
{
    if (d->running)
        d->nodes.hooks->stop_at(d->nodes.job, d->nodes.hooks->close_steps(d->nodes.job) + 1, 0);
}

void dynamic_ask_stop(struct nodes *nodes, int for_good)
{
    struct dynamic *d = (struct dynamic *)nodes;
    const struct node_wish wish = node_wish(d->ranks.generation, for_good);

    d->for_good |= for_good;
    if (d->host.stream)
        link_tell(&d->host, NODE_WISH, "%s %d", wish.generation, for_good);
    else if (d->store || d->alone)
        dynamic_ask_guests(d, &wish);
    else if (d->linked)
        dynamic_stop_alone(d);
}
