/* SPDX-License-Identifier: Apache-2.0 */
/* path_select.c - which way a call on device memory goes: one is tried after the other, until one
 * says that it was it.
 *
 * What an operation's wish says goes first (algorithm_wishes.h), else what CT_DEVICE says, else
 * what is there: a library of the devices' maker where each rank has one of its own, else the
 * devices of a host.  A wish is no must; the others follow, and the host is the last.  All ranks
 * have the same order: an operation's wish is part of their signatures, CT_DEVICE of their cards.
 */
#include "collectives/device/device_call.h"

#include <stdio.h>
#include <string.h>

struct way {
    const char *name;
    device_way *try;
};

static const struct way fused = { "fused", device_fused };
static const struct way nccl = { "nccl", device_nccl };
static const struct way hier = { "hier", device_hier };

int device_wish(const struct call *c, const struct devices *d)
{
    return c->wish != WISH_NONE ? c->wish : (int)d->wish;
}

/* NULL at the end: then the host. */
static const struct way *const *ways_of(const ct_group *group, int wish)
{
    const struct devices *d = &group->staging->devices;
    static const struct way *const apart[] = { &nccl, &fused, NULL };
    static const struct way *const by_wish[][4] = {
        [WISH_NONE] = { &fused, &nccl, &hier, NULL },
        [WISH_FUSED] = { &fused, &nccl, &hier, NULL },
        [WISH_NCCL] = { &nccl, &hier, &fused, NULL },
        [WISH_STAGED] = { NULL },
    };

    return wish == WISH_NONE && d->apart && group->size > 1 ? apart : by_wish[wish];
}

static const struct way *const *ways_of_call(const struct call *c)
{
    return ways_of(c->group, device_wish(c, &c->group->staging->devices));
}

int device_is_first(const struct call *c, device_way *way)
{
    const struct way *first = ways_of_call(c)[0];

    return first && first->try == way;
}

int device_handover_is_to_come(const ct_group *group)
{
    const struct staging *s = group->staging;

    return !s->handover.tried && !s->unfused && ways_of(group, (int)s->devices.wish)[0] == &fused;
}

/* All ranks together: in the group's first call that is not of a v form, whatever its own wish. */
static ct_status find_handover(struct call *c, struct staging *s)
{
    return device_handover_is_to_come(c->group)
               ? handover_begin(c, &s->handover, s->devices.by_streams)
               : CT_OK;
}

/* Whether it can leave a call to the launches of a graph; the others do something on the host. */
static int can_be_captured(const struct call *c, const struct way *way)
{
    return way == &nccl || (way == &fused && c->by_streams);
}

ct_status device_go_by_hosts(struct call *c)
{
    c->by_streams = 0;
    return device_wait_for_mark(c);
}

ct_status device_try_ways(struct call *c, struct staging *s, int *done)
{
    ct_status status = find_handover(c, s);

    for (const struct way *const *way = ways_of_call(c); *way && status == CT_OK && !*done; way++) {
        if (c->capture == NOT_CAPTURED || can_be_captured(c, *way))
            status = (*way)->try(c, done);
        if (status == CT_OK && !*done && c->by_streams)
            status = device_go_by_hosts(c); /* fused was the first way */
    }
    return status;
}

/* ---- In words -------------------------------------------------------------------------- */

static const char *reason(const struct call *c, const char *taken)
{
    const int first = c->wish != WISH_NONE && !strcmp(taken, way_name((enum device_wish)c->wish));

    if (first)
        return c->group->choices->source[c->signature.operation];
    if (c->wish == WISH_NONE && !strcmp(taken, way_name(c->group->staging->devices.wish)))
        return "CT_DEVICE";
    return "the first that can";
}

/* Of the others, whether they were tried.  Why one can't a line of CT_LOG=info says, once. */
void device_explain(const struct call *c)
{
    static const struct way *const asked[] = { &fused, NULL };
    const struct way *const *way =
        device_is_agreed(c->signature.operation) ? ways_of_call(c) : asked;
    const char *const taken = atomic_load(&c->group->last_algorithm);
    char line[400];
    size_t used = choices_begin_line(c, 1, line, sizeof line);
    int is_behind = 0;

    if (used == 0)
        return;
    if (used < sizeof line)
        used +=
            (size_t)snprintf(line + used, sizeof line - used, "%s, %s", taken, reason(c, taken));
    for (; *way && used < sizeof line; way++) {
        if (!strcmp((*way)->name, taken))
            is_behind = 1;
        else
            used += (size_t)snprintf(line + used, sizeof line - used, "; %s %s", (*way)->name,
                                     is_behind ? "comes after it" : "can't");
    }
    if (is_behind && used < sizeof line)
        used += (size_t)snprintf(line + used, sizeof line - used, "; staged could");
    else if (used < sizeof line)
        used += (size_t)snprintf(line + used, sizeof line - used, "; %s on the host",
                                 c->algorithm->name);
    choices_end_line(line, used, sizeof line);
}
