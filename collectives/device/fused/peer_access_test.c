/* SPDX-License-Identifier: Apache-2.0 */
/* peer_access_test.c - that the leaders' devices reach each other's memory.
 *
 * A driver that says so is not enough: where the IOMMU or PCIe's access control is in the way,
 * copies between GPUs end well and bring other bytes.  So, in a group's first call that needs it:
 *
 *   each leader makes a little memory on its device, with a pattern of its own; all are told
 *   -> it reads the pattern of each other, and writes its own there
 *   -> when all have said that they are done, it looks at what the others wrote
 *   -> all say what they found; one bad pair, and the group takes another path
 *
 * Nothing of the callers' is touched. */
#include "collectives/device/fused/fused_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/group/device_peer_access.h"
#include "runtime/group/device_wait.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

enum { AREA = 16 << 10, SPOILT = 0xff };

struct proof {
    struct call *call;
    const struct leaders *leaders;
    char *memory; /* on the device: areas that the others write, ours to be read; what we read */
    unsigned char *pattern, *seen; /* [AREA] */
};

struct shown {
    struct device_handle handle;
    int32_t failed;
    char why[320];
};

/* That of the device table, wherever the buffers of this call are. */
static const struct place *place_of_proof(const struct proof *p)
{
    return &p->call->group->device->table.place;
}

/* Of leader i, unlike every other's in each word. */
static void make_pattern(const struct proof *p, int i)
{
    uint64_t state = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);

    for (size_t at = 0; at < AREA; at += sizeof state) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(p->pattern + at, &state, sizeof state);
    }
}

/* In anybody's memory: what leader i writes there, or of i itself its pattern. */
static char *area(char *memory, int i)
{
    return memory + (size_t)i * AREA;
}

/* In ours: what we read of leader i's. */
static char *read_area(const struct proof *p, int i)
{
    return area(p->memory, p->leaders->count + i);
}

static ct_status prepare(struct proof *p, struct device_handle *handle)
{
    const struct place *place = place_of_proof(p);
    const size_t bytes = 2 * (size_t)p->leaders->count * AREA;
    void *memory = NULL;
    ct_status status = place->space->alloc(place->device, bytes, &memory);

    p->memory = memory;
    memset(p->seen, SPOILT, AREA);
    for (int i = 0; i < 2 * p->leaders->count && status == CT_OK; i++)
        status = place->space->from_host(place->device, area(p->memory, i), p->seen, AREA);
    make_pattern(p, p->leaders->mine);
    if (status == CT_OK)
        status = place->space->from_host(place->device, area(p->memory, p->leaders->mine),
                                         p->pattern, AREA);
    return status == CT_OK ? place->space->give(place->device, memory, bytes, handle) : status;
}

/* ---- Between two ------------------------------------------------------------------ */

/* By what calls use. */
static ct_status move(const struct proof *p, char *to, const char *from)
{
    static const int one = 1;
    const struct place *place = place_of_proof(p);
    const struct fold copy = { CT_U8, CT_MAX, 1, 1, &one };
    void *const dst = to;
    const void *const src = from;
    const struct fold_part part = { &dst, &src, 1, AREA };

    return place->space->fold(place->device, NULL, &copy, NULL, &part, 1);
}

static ct_status wait_for_all(const struct proof *p)
{
    struct call *c = p->call;

    return device_wait(c->group, *place_of_proof(p), NULL, c->deadline, &c->group->failure.status);
}

/* What leader i sent, is it there? */
static ct_status compare(const struct proof *p, const char *there, int i, const char *how)
{
    const struct place *place = place_of_proof(p);
    const ct_status status = place->space->to_host(place->device, p->seen, there, AREA);

    make_pattern(p, i);
    if (status == CT_OK && memcmp(p->seen, p->pattern, AREA) != 0)
        return ct_fail(CT_ERR_UNSUPPORTED, "other bytes arrived than were %s", how);
    return status;
}

static ct_status try_peer(const struct proof *p, int i, const struct device_handle *handle)
{
    const struct place *place = place_of_proof(p);
    const int mine = p->leaders->mine;
    void *mapped = NULL;
    ct_status status = place->space->take(place->device, handle, p->call->group, &mapped), finished;

    fused_of(p->call->group)->mapped = *place;
    if (status != CT_OK)
        return status;
    status = move(p, read_area(p, i), area(mapped, i));
    if (status == CT_OK)
        status = move(p, area(mapped, mine), area(p->memory, mine));
    finished = wait_for_all(p);
    if (finished != CT_OK) /* it may still be used */
        return finished;
    return status == CT_OK ? compare(p, read_area(p, i), i, "read") : status;
}

/* ---- What all say ------------------------------------------------------------------ */

/* Of leader i, in a sentence. */
static int name_of(const struct proof *p, int i)
{
    return p->call->group->ranks[p->leaders->rank[i]];
}

static void name_device(const unsigned char id[16], char text[48])
{
    size_t at = (size_t)snprintf(text, 48, "GPU");

    for (int i = 0; i < 16; i++)
        at += (size_t)snprintf(text + at, 48 - at, "%s%02x",
                               i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
}

/* What went wrong between this rank's device and leader i's is a word for all; what ends a call
 * is an error. */
static ct_status note(const struct proof *p, int i, ct_status status, struct shown *shown)
{
    char mine[48], other[48];

    if (status == CT_OK || status == CT_ERR_TIMEOUT || status == CT_ERR_ABORTED)
        return status;
    shown->failed = 1;
    name_device(p->leaders->id[p->leaders->mine], mine);
    name_device(p->leaders->id[i], other);
    if (i == p->leaders->mine)
        snprintf(shown->why, sizeof shown->why, "rank %d on %s: %s", name_of(p, i), mine,
                 ct_last_error());
    else
        snprintf(shown->why, sizeof shown->why, "rank %d on %s and rank %d on %s: %s",
                 name_of(p, p->leaders->mine), mine, name_of(p, i), other, ct_last_error());
    return CT_OK;
}

/* *why: of the first that failed; empty where none did. */
static ct_status gather(const struct proof *p, const struct shown *mine, struct shown *all,
                        char why[320])
{
    const ct_status status = device_gather(p->call, mine, sizeof *mine, all);

    why[0] = 0;
    for (int i = p->call->group->size - 1; i >= 0 && status == CT_OK; i--)
        if (all[i].failed)
            snprintf(why, 320, "%.319s", all[i].why);
    return status;
}

static ct_status try_all_peers(const struct proof *p, const struct shown *all, struct shown *mine)
{
    ct_status status = CT_OK;

    for (int i = 0; i < p->leaders->count && status == CT_OK && !mine->failed; i++)
        if (i != p->leaders->mine)
            status = note(p, i, try_peer(p, i, &all[p->leaders->rank[i]].handle), mine);
    return status;
}

static ct_status look_at_all(const struct proof *p, struct shown *mine)
{
    ct_status status = CT_OK;

    for (int i = 0; i < p->leaders->count && status == CT_OK && !mine->failed; i++)
        if (i != p->leaders->mine)
            status = note(p, i, compare(p, area(p->memory, i), i, "written"), mine);
    return status;
}

static ct_status steps(struct proof *p, struct shown *all, char why[320])
{
    const int works = p->leaders->mine >= 0;
    struct shown mine;
    ct_status status = CT_OK;

    memset(&mine, 0, sizeof mine); /* no byte of what travels is left undefined */
    if (works)
        status = note(p, p->leaders->mine, prepare(p, &mine.handle), &mine);
    if (status == CT_OK)
        status = gather(p, &mine, all, why);
    if (status == CT_OK && works && !*why)
        status = try_all_peers(p, all, &mine);
    if (status == CT_OK && !*why) {
        status = gather(p, &mine, all, why);
        if (status == CT_OK && works && !*why)
            status = look_at_all(p, &mine);
        if (status == CT_OK && !*why)
            status = gather(p, &mine, all, why);
    }
    return status;
}

static void say(const struct call *c, const char *why)
{
    if (c->group->rank == 0)
        log_line(c->group->device->table.override == PATH_FUSED ? LOG_WARN : LOG_INFO,
                 "group %s: calls can't be fused over its GPUs: %s", c->group->name, why);
}

ct_status fused_test_peers(struct call *c, struct fused_group *f)
{
    const struct leaders *l = device_leaders(c->group);
    struct shown *all = calloc((size_t)c->group->size, sizeof *all);
    struct proof proof = { .call = c, .leaders = l, .pattern = malloc(AREA), .seen = malloc(AREA) };
    char why[320];
    ct_status status = all && proof.pattern && proof.seen
                           ? steps(&proof, all, why)
                           : ct_fail(CT_ERR_NOMEM, "no memory to try what %d GPUs reach", l->count);

    if (status == CT_OK) {
        f->tested = (struct bounce){ .memory = proof.memory, .place = *place_of_proof(&proof) };
        f->peer_access = *why ? PEERS_OUT_OF_REACH : PEERS_REACHED;
        if (*why)
            say(c, why);
        else
            reach_proved(c->group, l->id, l->count); /* for messages, too */
    } /* else others may still use that memory: it is lost */
    free(all);
    free(proof.pattern);
    free(proof.seen);
    return status;
}
