/* SPDX-License-Identifier: Apache-2.0 */
/* hier.c - several ranks on each of several devices, which don't all reach each other: the
 * ranks of a device are a team, one of them its executor, and NCCL is between the executors.
 *
 *   the group's first: the executors join in NCCL (nccl.c), each team gets memory to share
 *   -> each call: a team shows its executor where its buffers are, which maps them (once)
 *   -> could every executor?  all ranks know, before anything is touched
 *   -> it folds what its team gives, or copies it together; NCCL; it spreads what came
 * (hier_leader.c, hier_blocks.c)
 *   -> its team waits for its word
 *
 * So NCCL never sees two ranks with one device, and between devices go a device's bytes and not its
 * ranks'.  The teams may be any: a broadcast, a reduce and an all_reduce don't mind, and what has a
 * block for each rank gets NCCL's order in between (hier_blocks.c). */
#include "collectives/device/nccl/hier_leader.h"

#include <stdlib.h>

#include "runtime/group/device_wait.h"
#include "runtime/util/log.h"

/* From what all ranks agree on.  An average is that of the teams' averages. */
static int fits(const struct call *c, const struct executors *e)
{
    const int are_alike = e->most * e->count == e->ranks;

    if (call_bytes(c) == 0 || !nccl_can(c) || (c->signature.op == CT_AVG && !are_alike))
        return 0;
    switch (c->signature.operation) {
    case OPERATION_BROADCAST:
    case OPERATION_REDUCE:
    case OPERATION_ALL_REDUCE:
        return 1;
    default:
        return team_has_slots(c, e);
    }
}

static void team_free(struct team *t)
{
    free(t->rank);
    free(t->send);
    free(t->offer);
}

static ct_status team_of(struct call *c, struct team *t)
{
    const ct_group *g = c->group;
    const struct executors *e = &g->staging->devices.executors;
    const size_t size = (size_t)e->has[e->of[g->rank]];

    *t = (struct team){
        .call = c, .e = e, .flat = g->team, .sends = device_sends(c), .recvs = device_recvs(c)
    };
    t->rank = calloc(size, sizeof *t->rank);
    t->send = calloc(size * (size_t)(t->sends + t->recvs), sizeof *t->send);
    t->offer = malloc(offer_most(c));
    if (!t->rank || !t->send || !t->offer) {
        team_free(t);
        return ct_fail(CT_ERR_NOMEM, "no memory to note the ranks of a GPU");
    }
    t->recv = t->send + size * (size_t)t->sends;
    for (int i = 0; i < g->size; i++)
        if (e->of[i] == e->of[g->rank])
            t->rank[t->size++] = i;
    return CT_OK;
}

/* *all: all ranks of the group said so. */
static ct_status do_all(struct call *c, int mine, int *all)
{
    const int32_t word = mine;
    int32_t *words = malloc((size_t)c->group->size * sizeof *words);
    ct_status status;

    if (!words)
        return ct_fail(CT_ERR_NOMEM, "no memory for the words of %d ranks", c->group->size);
    status = device_tell(c, &word, sizeof word, words);
    *all = status == CT_OK;
    for (int i = 0; i < c->group->size && status == CT_OK; i++)
        *all &= words[i] != 0;
    free(words);
    return status;
}

/* ---- The group's first ------------------------------------------------------------------ */

/* Who has the same device and yet shares no memory with us is in another container. */
static ct_status share_memory(struct call *c, const struct team *t)
{
    ct_group *g = c->group;
    struct flat *flat = NULL;
    int own = 0, here = g->mesh->node.base != NULL, members[FLAT_MOST];
    ct_status status;

    for (int i = 0; i < t->size && i < FLAT_MOST; i++) {
        members[i] = g->ranks[t->rank[i]];
        here &= g->mesh->peers[members[i]].local >= 0;
        if (t->rank[i] == g->rank)
            own = i;
    }
    if (!here || t->size > FLAT_MOST)
        return CT_OK;
    status = flat_create(g->mesh, members, t->size, own, group_channel(g, 0), c->deadline,
                         &g->broken, &flat);
    if (flat)
        atomic_store(&g->team, flat);
    return status;
}

/* In a call it is too late to find that an executor has no kernels, or none for so many sources. */
static ct_status try_fold(struct call *c, const struct team *t, void *memory, int *can)
{
    const struct place *place = &c->group->staging->devices.place;
    const struct fold fold = { CT_U8, CT_MAX, t->size, 1, &t->size };
    const void **const src = calloc((size_t)t->size, sizeof *src);
    const struct fold_part part = { &memory, src, 1, 1 };
    ct_status status = CT_OK;

    for (int i = 0; i < t->size && src; i++)
        src[i] = memory;
    *can = src && place->space->fold(place->device, NULL, &fold, NULL, &part, 1) == CT_OK;
    if (*can)
        status = device_wait(c->group, *place, NULL, c->deadline, &c->group->broken);
    free(src);
    return status;
}

static ct_status prepare(struct call *c, const struct team *t, struct staging *s, int *can)
{
    ct_status status = t->size > 1 ? share_memory(c, t) : CT_OK;
    void *memory = NULL;

    *can = status == CT_OK && (t->size == 1 || c->group->team);
    if (*can && t->e->mine >= 0) {
        const struct place place = s->devices.place;

        *can = place.space->alloc(place.device, team_scratch, &memory) == CT_OK;
        s->scratch = (struct bounce){ .memory = memory, .bytes = team_scratch, .place = place };
    }
    return *can && memory ? try_fold(c, t, memory, can) : status;
}

static ct_status begin(struct call *c, struct staging *s)
{
    struct team t;
    ct_status status;
    int can = 0;

    s->hier = NO_HIER;
    status = s->talking.state == NOT_TRIED ? talking_begin(c, &s->talking) : CT_OK;
    if (status != CT_OK || s->talking.state != TALKS)
        return status;
    status = team_of(c, &t);
    if (status != CT_OK)
        return status;
    status = prepare(c, &t, s, &can);
    team_free(&t);
    if (status == CT_OK)
        status = do_all(c, can, &can);
    if (can)
        s->hier = HIER;
    else if (status == CT_OK && c->group->rank == 0)
        log_line(
            LOG_INFO,
            "group %s: NCCL can't be: the ranks of a GPU share no memory, or it has no kernels "
            "or no room",
            c->group->name);
    return status;
}

/* ---- A call ---------------------------------------------------------------------------- */

static ct_status run(struct team *t, int *done)
{
    ct_status status = team_show(t);
    int can;

    if (status == CT_OK)
        status = do_all(t->call, t->e->mine < 0 || team_reach(t), &can);
    if (status != CT_OK || !can)
        return status;
    atomic_store(&t->call->group->last_algorithm, "hier");
    if (t->e->mine >= 0)
        status = team_work(t);
    if (status == CT_OK)
        status = team_wait(t);
    *done = status == CT_OK;
    return status;
}

/* Where calls are fused, one that can't be is staged: it might begin NCCL while a stream waits. */
static int may_begin(const ct_group *group, int wish)
{
    const struct staging *s = group->staging;

    return s->hier == HIER_NOT_TRIED && s->devices.executors.count > 1 && !s->devices.apart
           && wish != WISH_STAGED && (s->unfused || wish == WISH_NCCL);
}

int device_hier_is_to_come(const ct_group *group)
{
    return may_begin(group, group->staging->devices.wish)
           || (group->choices->may_wish_nccl && may_begin(group, WISH_NCCL));
}

ct_status device_hier(struct call *c, int *done)
{
    struct staging *s = c->group->staging;
    const struct executors *e = &s->devices.executors;
    struct team team;
    ct_status status = CT_OK;

    if ((s->hier != HIER && !may_begin(c->group, device_wish(c, &s->devices))) || !fits(c, e))
        return CT_OK;
    if (s->hier == HIER_NOT_TRIED)
        status = begin(c, s);
    if (status != CT_OK || s->hier != HIER)
        return status;
    status = team_of(c, &team);
    if (status != CT_OK)
        return status;
    status = run(&team, done);
    team_free(&team);
    return status;
}
