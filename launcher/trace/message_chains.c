/* SPDX-License-Identifier: Apache-2.0 */
/* message_chains.c - see message_chains.h.
 *
 * All steps, a message sent or taken, are put into an order in which causes stand before effects: a
 * clock's own steps in its order, and a message taken behind where it was sent.  Then for each
 * clock A one walk through all steps finds the latest time of A that is in the past of each other
 * clock. */
#include "launcher/trace/message_chains.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/trace/clock_align.h"

struct step {
    int64_t ns;
    size_t message;
    int clock, is_taken;
};

struct chains {
    struct text *messages;
    size_t count; /* of those that were there before, */
    int clocks;   /* and between how many */
    int is_full;  /* no more are added */
    char *direct; /* [from * clocks + to]: there are messages */
    struct step *steps, *ordered;
    size_t step_count, ordered_count;
    size_t *next;     /* of each clock: its step that is not in order yet, */
    int64_t *latest;  /* and the latest time of A that is in its past; -1: none */
    int64_t *carried; /* of each message: what its sender had then; -2: it was not sent yet */
};

static const struct clock_message *message_at(const struct chains *c, size_t i)
{
    return (const struct clock_message *)(const void *)c->messages->data + i;
}

/* What happened at the same nanosecond is no cause: sent before taken. */
static int by_clock(const void *a, const void *b)
{
    const struct step *one = a, *other = b;

    if (one->clock != other->clock)
        return one->clock - other->clock;
    return one->ns != other->ns ? (one->ns > other->ns) - (one->ns < other->ns)
                                : one->is_taken - other->is_taken;
}

static void list_steps(struct chains *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct clock_message *m = message_at(c, i);

        c->direct[m->from * c->clocks + m->to] = 1;
        c->steps[2 * i] = (struct step){ m->sent, i, m->from, 0 };
        c->steps[2 * i + 1] = (struct step){ m->taken, i, m->to, 1 };
        c->carried[i] = -2;
    }
    c->step_count = 2 * c->count;
    qsort(c->steps, c->step_count, sizeof *c->steps, by_clock);
    for (size_t i = c->step_count; i > 0; i--)
        c->next[c->steps[i - 1].clock] = i - 1;
}

/* As far as one clock gets without what the others do then. */
static int order_some(struct chains *c, int clock)
{
    const size_t before = c->ordered_count;

    for (size_t *next = &c->next[clock]; *next < c->step_count; ++*next) {
        const struct step *step = &c->steps[*next];

        if (step->clock != clock || (step->is_taken && c->carried[step->message] == -2))
            break;
        c->carried[step->message] = -1;
        c->ordered[c->ordered_count++] = *step;
    }
    return c->ordered_count > before;
}

static void order_steps(struct chains *c)
{
    int goes_on = 1;

    while (goes_on) {
        goes_on = 0;
        for (int i = 0; i < c->clocks; i++)
            goes_on |= order_some(c, i);
    }
}

static int is_wanted(const struct chains *c, int from, int to)
{
    return c->direct[to * c->clocks + from] && !c->direct[from * c->clocks + to];
}

static void add_chains_from(struct chains *c, int source)
{
    for (int i = 0; i < c->clocks; i++)
        c->latest[i] = -1;
    for (size_t i = 0; i < c->ordered_count; i++) {
        const struct step *step = &c->ordered[i];
        const int64_t origin = c->carried[step->message];
        const struct clock_message chain = { origin, step->ns, source, step->clock };

        if (!step->is_taken)
            c->carried[step->message] = step->clock == source ? step->ns : c->latest[step->clock];
        if (!step->is_taken || origin <= c->latest[step->clock] || step->clock == source)
            continue;
        c->latest[step->clock] = origin;
        if (!is_wanted(c, source, step->clock))
            continue;
        c->is_full |= c->messages->used >= CHAINS_GROWTH * c->count * sizeof chain;
        if (c->is_full)
            return;
        text_add(c->messages, (const char *)&chain, sizeof chain);
    }
}

static void add_chains(struct chains *c)
{
    list_steps(c);
    order_steps(c);
    for (int source = 0; source < c->clocks && !c->is_full; source++)
        for (int i = 0; i < c->clocks; i++)
            if (is_wanted(c, source, i)) {
                add_chains_from(c, source);
                break;
            }
}

int message_chains_add(struct text *messages, int clocks)
{
    const size_t n = (size_t)clocks, count = messages->used / sizeof(struct clock_message);
    struct chains c = { .messages = messages,
                        .count = count,
                        .clocks = clocks,
                        .direct = calloc(n, n),
                        .steps = calloc(2 * count + 1, sizeof *c.steps),
                        .ordered = calloc(2 * count + 1, sizeof *c.ordered),
                        .next = calloc(n, sizeof *c.next),
                        .latest = calloc(n, sizeof *c.latest),
                        .carried = calloc(count + 1, sizeof *c.carried) };

    c.is_full = !c.direct || !c.steps || !c.ordered || !c.next || !c.latest || !c.carried;
    if (!c.is_full)
        add_chains(&c);
    free(c.direct);
    free(c.steps);
    free(c.ordered);
    free(c.next);
    free(c.latest);
    free(c.carried);
    return c.is_full;
}
