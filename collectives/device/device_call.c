/* SPDX-License-Identifier: Apache-2.0 */
/* device_call.c - a collective on device memory.
 *
 *   what is in the group's stream when the call is made is waited for when it begins
 *   -> the group's first: who has which device, and what the users wish (device_table.c)
 *   -> fused: on each device of a host one rank works for all (fused.c)
 *   -> nccl: each rank has a device of its own (nccl.c); then before fused
 *   -> hier: the ranks of a device by one of them, and these by NCCL (hier.c)
 *   -> staged: else; copied to the host, an algorithm of the host, copied back (staged.c)
 *
 * When it returns, or its work is done, the results are there for any stream.  Which way is taken
 * the ranks find out together in the call, so that none waits in one way for who goes another.
 *
 * A call whose stream is being captured into a CUDA graph only becomes part of that, and runs when
 * it is launched.  Where no way can do so, all ranks refuse.
 *
 * Who goes first, and who next: path_select.c. */
#include "collectives/device/device_call.h"
#include "collectives/device/fused/bounce_buffer.h"

#include <stdio.h>
#include <stdlib.h>

#include "collectives/core/registry.h"
#include "include/ct_cuda.h"
#include "runtime/group/device_wait.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

ct_status device_note(struct call *c, int may_be_captured)
{
    const struct space *space = c->place.space;
    void *const stream = c->group->stream;
    void *before;
    ct_status status = space->enter(&before);

    if (status != CT_OK)
        return status;
    if (may_be_captured && stream && device_is_agreed(c->signature.operation))
        status = space->capture_of(c->place.device, stream, &c->capture);
    if (c->capture != NOT_CAPTURED)
        c->signature.algorithm |= SIGNATURE_CAPTURED;
    else if (status == CT_OK)
        status = space->mark(c->place.device, stream, &c->mark);
    space->leave(before);
    if (status == CT_ERR_CUDA && stream)
        ct_fail_in(status,
                   "%s: the stream of ct_set_stream() (is it of the GPU that has the buffers, and "
                   "not destroyed?): ",
                   operation_name(c->signature.operation));
    return status;
}

struct staging *staging_of(ct_group *group)
{
    if (!group->staging && !(group->staging = calloc(1, sizeof *group->staging)))
        ct_fail(CT_ERR_NOMEM, "no memory for calls on device memory");
    return group->staging;
}

/* In the group's first call, for it is made in no stream: memory is got and mapped for it. */
static int proof_is_to_come(const struct staging *s)
{
    const struct executors *e = &s->devices.executors;

    return e->count > 1 && e->proof == NOT_PROVED && !s->unfused && s->devices.wish != WISH_STAGED;
}

static ct_status find_devices(struct call *c, struct staging *s)
{
    ct_status status = s->devices.known ? CT_OK : device_cards(c, &s->devices);

    if (status == CT_OK && c->group->size > 1 && !c->group->flat && !s->unfused) {
        s->unfused = 1;
        if (s->devices.wish == WISH_FUSED && c->group->rank == 0)
            log_line(LOG_INFO, "group %s: CT_DEVICE=fused can't be: the ranks share no memory",
                     c->group->name);
    }
    if (status == CT_OK && proof_is_to_come(s) && c->capture == NOT_CAPTURED)
        status = executors_prove(c, &s->devices.executors);
    return status;
}

ct_status device_wait_for_mark(struct call *c)
{
    const ct_status status =
        c->mark ? device_wait(c->group, c->place, c->mark, c->deadline, &c->group->broken) : CT_OK;

    device_forget(c);
    return status;
}

void device_forget(struct call *c)
{
    if (c->mark)
        c->place.space->forget(c->place.device, c->mark);
    c->mark = NULL;
}

/* A group that failed makes no more calls, and one of its ranks may be gone, whose memory would
 * stay for as long as it is mapped.  Not while the device may be at it, or a stream waits for the
 * very call that failed, or may do what streams have handed over: then the group's end does it, or
 * nobody. */
static void unmap(ct_group *group, struct staging *s, int wait_ms)
{
    const struct place place = s->mapped;
    void *before;

    if (!place.space || place.space->enter(&before) != CT_OK)
        return;
    if (place.space->finish(place.device, deadline_after(wait_ms), NULL) != CT_ERR_TIMEOUT)
        place.space->put(group);
    place.space->leave(before);
}

static ct_status unmap_failed(ct_group *group, struct staging *s, ct_status status)
{
    char words[1024];

    snprintf(words, sizeof words, "%s", ct_last_error());
    unmap(group, s, 0); /* who failed has waited for its device already */
    return ct_fail(status, "%s", words);
}

int device_is_asked(const struct call *c)
{
    const struct staging *s = c->group->staging;

    return !sizes_are_agreed(c) && c->group->flat && s && s->devices.known && !s->unfused
           && s->devices.wish != WISH_STAGED && !proof_is_to_come(s);
}

static ct_status say_why_not(const struct call *c, const struct talking *t)
{
    if (c->capture == CAPTURE_IS_VOID)
        return ct_fail(CT_ERR_INVALID, "the capture of the group's stream is void: something that "
                                       "was done meanwhile can't be in a CUDA graph");
    if (device_nccl_can_join(c))
        return ct_fail(CT_ERR_INVALID,
                       "the group has not joined NCCL yet, which can't be done in a CUDA graph: "
                       "make such a call once before the capture");
    if (!atomic_load(&c->group->in_streams))
        return ct_fail(CT_ERR_INVALID,
                       "the group has made no call on device memory yet, and its first can't be in "
                       "a CUDA graph: make such a call once before the capture");
    return ct_fail(
        CT_ERR_INVALID,
        "only calls that go by NCCL, or that GPUs of one host make where the buffers lie, can be "
        "in a CUDA graph, and not all ranks' can (docs/gpu.md)%s%s: make it outside of the "
        "capture",
        *t->why ? ": " : "", t->why);
}

/* All ranks know it by what they agree on.  In a last round each finds out who does not capture,
 * and makes the call instead. */
static ct_status refuse_capture(struct call *c, const struct staging *s)
{
    char *const all = malloc((size_t)c->group->size);
    const char mine = 0;
    ct_status status;

    if (!all)
        return ct_fail(CT_ERR_NOMEM, "no memory for the words of %d ranks", c->group->size);
    status = device_tell(c, &mine, sizeof mine, all);
    free(all);
    c->refused = status == CT_OK;
    return status == CT_OK ? say_why_not(c, &s->talking) : status;
}

static ct_status run(struct call *c, struct staging *s, int *done)
{
    ct_status status = c->by_streams ? CT_OK : device_wait_for_mark(c);

    if (status != CT_OK)
        return status;
    if (device_is_asked(c))
        return device_fused(c, done);
    if (!device_is_agreed(c->signature.operation))
        return CT_OK;
    status = find_devices(c, s);
    return status == CT_OK ? device_try_ways(c, s, done) : status;
}

/* Of a rank that has nothing on a device, but may be the one that works for all. */
static ct_status run_elsewhere(struct call *c, struct staging *s)
{
    const struct space *space = s->devices.place.space;
    ct_status status;
    void *before;
    int done = 0;

    status = space->enter(&before);
    if (status != CT_OK)
        return status;
    c->place = s->devices.place;
    c->on_host = blocks_bytes(c, &c->send) + blocks_bytes(c, &c->recv) > 0;
    status = run(c, s, &done);
    c->place = (struct place){ NULL, NULL };
    space->leave(before);
    return status != CT_OK || done ? status : c->algorithm->run(c);
}

/* group->in_streams: which calls a stream may stand still for. */
enum { NONE_YET, NOT_AGREED, WITHOUT_NCCL, ALL };

/* What was found out in the group's first call is there for all threads since in_streams is set. */
int device_hands_over(const struct call *c)
{
    const ct_group *g = c->group;

    return device_is_agreed(c->signature.operation) && atomic_load(&g->in_streams) >= WITHOUT_NCCL
           && g->staging->handover.on && device_is_first(c, device_fused)
           && (g->staging->handover.wished || c->capture != NOT_CAPTURED);
}

/* May a call still begin it? */
static int nccl_is_to_come(const ct_group *group, const struct staging *s)
{
    const struct devices *d = &s->devices;

    if (!d->known)
        return 1;
    return d->talks && s->talking.state == NOT_TRIED
           && (device_nccl_is_to_come(group) || device_hier_is_to_come(group));
}

int device_may_hold_stream(const struct call *c)
{
    const int least = !device_is_agreed(c->signature.operation) ? NOT_AGREED
                      : nccl_can(c)                             ? ALL
                                                                : WITHOUT_NCCL;

    if (atomic_load(&c->group->in_streams) < least)
        return 0;
    return (nccl_can(c) && atomic_load(&c->group->staging->nccl_first)) || !bounce_must_grow(c);
}

static void note_for_streams(const struct call *c, struct staging *s)
{
    int none = NONE_YET;

    if (proof_is_to_come(s))
        return;
    bounce_note(s, s->devices.known && !s->unfused && s->devices.wish != WISH_STAGED);
    atomic_store(&s->nccl_first,
                 s->devices.apart && s->talking.state == TALKS && device_is_first(c, device_nccl));
    if (device_is_agreed(c->signature.operation) && !device_handover_is_to_come(c->group))
        atomic_store(&c->group->in_streams, nccl_is_to_come(c->group, s) ? WITHOUT_NCCL : ALL);
    else
        atomic_compare_exchange_strong(&c->group->in_streams, &none, NOT_AGREED);
}

static ct_status run_here(struct call *c, struct staging *s)
{
    ct_status status;
    void *before;
    int done = 0;

    status = c->place.space->enter(&before);
    if (status != CT_OK)
        return status;
    status = run(c, s, &done);
    if (status == CT_OK && !done)
        status = c->capture == NOT_CAPTURED ? device_staged(c) : refuse_capture(c, s);
    c->place.space->leave(before);
    if (status == CT_OK)
        note_for_streams(c, s);
    if (status == CT_OK && c->group->choices->explain)
        device_explain(c);
    return status;
}

ct_status device_run(struct call *c)
{
    struct staging *s = staging_of(c->group);
    ct_status status;

    if (!s)
        return CT_ERR_NOMEM;
    status = c->place.space ? run_here(c, s) : run_elsewhere(c, s);
    return status == CT_OK || c->refused || !s->mapped.space || s->handover.used
               ? status
               : unmap_failed(c->group, s, status);
}

void staging_drop(ct_group *group)
{
    struct staging *s = group->staging;

    if (!s)
        return;
    talking_end(&s->talking, atomic_load(&group->broken) == CT_OK);
    if (!handover_stays(group, &s->handover)) {
        unmap(group, s, FLAT_DEVICE_SETTLING_MS);
        handover_end(group, &s->handover);
    }
    bounce_free(&s->tried);
    bounce_free(&s->scratch);
    executors_free(&s->devices.executors);
    staged_end(group, s->staged);
    free(s->offer);
    bounce_free(&s->bounce);
    free(s);
    group->staging = NULL;
}

/* CU_STREAM_PER_THREAD, which is cudaStreamPerThread. */
#define PER_THREAD ((void *)(uintptr_t)2)

ct_status ct_set_stream(ct_group *group, void *stream)
{
    ct_group *g;
    const ct_status status = group_resolve_member(group, &g);

    if (status != CT_OK)
        return ct_fail_in(status, "ct_set_stream: ");
    if (stream == PER_THREAD)
        return ct_fail(
            CT_ERR_INVALID,
            "ct_set_stream: the per-thread default stream is another one in each thread, "
            "and libct has threads of its own: give it a stream that was created");
    g->stream = stream;
    return CT_OK;
}
