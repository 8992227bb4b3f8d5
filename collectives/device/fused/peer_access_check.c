/* SPDX-License-Identifier: Apache-2.0 */
/* peer_access_check.c - checks that the leaders' devices have peer access.
 *
 * The driver's report of peer access is not enough: with an IOMMU or PCIe access control, copies
 * between GPUs may end without an error but transfer wrong bytes.  So a group's first call that
 * needs peer access does these steps:
 *
 *   Each leader allocates a little memory on its device, and writes its pattern to this memory. The
 *   ranks gather the handles of the memory.
 *   Each leader reads the pattern of each other leader, and writes its own pattern to the other
 *   leader's memory.
 *   When all leaders are done, each leader compares the bytes that the other leaders wrote.
 *   The ranks gather the results.  If the check of a pair failed, the group uses another path.
 *
 * The check does not touch the callers' buffers. */
#include "collectives/device/fused/fused_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/group/group_device.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

enum { PART = 16 << 10, SPOILT = 0xff };

struct peer_check {
    struct call *call;
    const struct leaders *leaders;
    char *memory;                  /* on the device; see part_of_leader() and part_read() */
    unsigned char *pattern, *seen; /* [PART] bytes */
};

struct access_outcome {
    struct device_handle handle;
    int32_t failed;
    char why[320];
};

/* Returns the device of the device table.  The buffers of this call may be on another device. */
static const struct place *access_check_place(const struct peer_check *p)
{
    return &p->call->group->device->table.place;
}

/* Makes the pattern of leader i, which differs in each word from the patterns of all other leaders.
 */
static void make_pattern(const struct peer_check *p, int i)
{
    uint64_t state = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);

    for (size_t at = 0; at < PART; at += sizeof state) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(p->pattern + at, &state, sizeof state);
    }
}

/* Returns the part of a leader's memory that leader i writes.  In its own memory, a leader's part
 * has the leader's pattern. */
static char *part_of_leader(char *memory, int i)
{
    return memory + (size_t)i * PART;
}

/* Returns the part of this leader's memory into which this leader reads leader i's pattern. */
static char *part_read(const struct peer_check *p, int i)
{
    return part_of_leader(p->memory, p->leaders->count + i);
}

static ct_status access_prepare(struct peer_check *p, struct device_handle *handle)
{
    const struct place *place = access_check_place(p);
    const size_t bytes = 2 * (size_t)p->leaders->count * PART;
    void *memory = NULL;
    ct_status status = place->space->alloc(place->device, bytes, &memory);

    p->memory = memory;
    memset(p->seen, SPOILT, PART);
    for (int i = 0; i < 2 * p->leaders->count && status == CT_OK; i++)
        status =
            place->space->from_host(place->device, part_of_leader(p->memory, i), p->seen, PART);
    make_pattern(p, p->leaders->mine);
    if (status == CT_OK)
        status = place->space->from_host(place->device, part_of_leader(p->memory, p->leaders->mine),
                                         p->pattern, PART);
    return status == CT_OK ? place->space->give(place->device, memory, bytes, handle) : status;
}

/* ---- Between two ------------------------------------------------------------------ */

/* Copies a part with the kernel that calls use. */
static ct_status copy_part(const struct peer_check *p, char *to, const char *from)
{
    static const int one = 1;
    const struct place *place = access_check_place(p);
    const struct fold copy = { CT_U8, CT_MAX, 1, 1, &one };
    void *const dst = to;
    const void *const src = from;
    const struct fold_part part = { .dst = &dst, .src = &src, .dsts = 1, .count = PART };

    return place->space->fold(place->device, NULL, &copy, NULL, &part, 1);
}

static ct_status access_wait_for_all(const struct peer_check *p)
{
    struct call *c = p->call;

    return device_wait(c->group, *access_check_place(p), NULL, c->deadline,
                       &c->group->failure.status);
}

/* Checks that `there` has leader i's pattern. */
static ct_status access_compare(const struct peer_check *p, const char *there, int i,
                                const char *how)
{
    const struct place *place = access_check_place(p);
    const ct_status status = place->space->to_host(place->device, p->seen, there, PART);

    make_pattern(p, i);
    if (status == CT_OK && memcmp(p->seen, p->pattern, PART) != 0)
        return ct_fail(CT_ERR_UNSUPPORTED, "other bytes arrived than were %s", how);
    return status;
}

static ct_status check_peer(const struct peer_check *p, int i, const struct device_handle *handle)
{
    const struct place *place = access_check_place(p);
    const int mine = p->leaders->mine;
    void *mapped = NULL;
    ct_status status = place->space->take(place->device, handle, p->call->group, &mapped), finished;

    fused_of(p->call->group)->mapped = *place;
    if (status != CT_OK)
        return status;
    status = copy_part(p, part_read(p, i), part_of_leader(mapped, i));
    if (status == CT_OK)
        status = copy_part(p, part_of_leader(mapped, mine), part_of_leader(p->memory, mine));
    finished = access_wait_for_all(p);
    if (finished != CT_OK) /* the copies may still run, so *seen must not be read */
        return finished;
    return status == CT_OK ? access_compare(p, part_read(p, i), i, "read") : status;
}

/* ---- Results ------------------------------------------------------------------ */

/* Returns the rank number of leader i, for messages. */
static int access_name_of(const struct peer_check *p, int i)
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

/* Records a failure between this rank's device and leader i's device in outcome->why, which all
 * ranks will gather, and returns CT_OK.  A timeout or an abort is returned instead, and ends the
 * call. */
static ct_status access_note(const struct peer_check *p, int i, ct_status status,
                             struct access_outcome *outcome)
{
    char mine[48], other[48];

    if (status == CT_OK || status == CT_ERR_TIMEOUT || status == CT_ERR_ABORTED)
        return status;
    outcome->failed = 1;
    name_device(p->leaders->id[p->leaders->mine], mine);
    name_device(p->leaders->id[i], other);
    if (i == p->leaders->mine)
        snprintf(outcome->why, sizeof outcome->why, "rank %d on %s: %s", access_name_of(p, i), mine,
                 ct_last_error());
    else
        snprintf(outcome->why, sizeof outcome->why, "rank %d on %s and rank %d on %s: %s",
                 access_name_of(p, p->leaders->mine), mine, access_name_of(p, i), other,
                 ct_last_error());
    return CT_OK;
}

/* Gathers all outcomes.  Sets why[] to the reason of the first rank that failed, or to "" if no
 * rank failed. */
static ct_status access_gather(const struct peer_check *p, const struct access_outcome *mine,
                               struct access_outcome *all, char why[320])
{
    const ct_status status = device_gather(p->call, mine, sizeof *mine, all);

    why[0] = 0;
    for (int i = p->call->group->size - 1; i >= 0 && status == CT_OK; i--)
        if (all[i].failed)
            snprintf(why, 320, "%.319s", all[i].why);
    return status;
}

static ct_status check_all_peers(const struct peer_check *p, const struct access_outcome *all,
                                 struct access_outcome *mine)
{
    ct_status status = CT_OK;

    for (int i = 0; i < p->leaders->count && status == CT_OK && !mine->failed; i++)
        if (i != p->leaders->mine)
            status = access_note(p, i, check_peer(p, i, &all[p->leaders->rank[i]].handle), mine);
    return status;
}

static ct_status compare_all(const struct peer_check *p, struct access_outcome *mine)
{
    ct_status status = CT_OK;

    for (int i = 0; i < p->leaders->count && status == CT_OK && !mine->failed; i++)
        if (i != p->leaders->mine)
            status = access_note(
                p, i, access_compare(p, part_of_leader(p->memory, i), i, "written"), mine);
    return status;
}

static ct_status access_steps(struct peer_check *p, struct access_outcome *all, char why[320])
{
    const int works = p->leaders->mine >= 0;
    struct access_outcome mine;
    ct_status status = CT_OK;

    memset(&mine, 0, sizeof mine); /* sets the padding bytes too, since the struct is sent */
    if (works)
        status = access_note(p, p->leaders->mine, access_prepare(p, &mine.handle), &mine);
    if (status == CT_OK)
        status = access_gather(p, &mine, all, why);
    if (status == CT_OK && works && !*why)
        status = check_all_peers(p, all, &mine);
    if (status == CT_OK && !*why) {
        status = access_gather(p, &mine, all, why);
        if (status == CT_OK && works && !*why)
            status = compare_all(p, &mine);
        if (status == CT_OK && !*why)
            status = access_gather(p, &mine, all, why);
    }
    return status;
}

static void access_say(const struct call *c, const char *why)
{
    if (c->group->rank == 0)
        log_line(c->group->device->table.override == PATH_FUSED ? LOG_WARN : LOG_INFO,
                 "group %s: calls can't be fused over its GPUs: %s", c->group->name, why);
}

ct_status fused_check_peers(struct call *c, struct fused_group *f)
{
    const struct leaders *l = device_leaders(c->group);
    struct access_outcome *all = calloc((size_t)c->group->size, sizeof *all);
    struct peer_check check = {
        .call = c, .leaders = l, .pattern = malloc(PART), .seen = malloc(PART)
    };
    char why[320];
    ct_status status =
        all && check.pattern && check.seen
            ? access_steps(&check, all, why)
            : ct_fail(CT_ERR_NOMEM, "no memory to check peer access of %d GPUs", l->count);

    if (status == CT_OK) {
        f->checked =
            (struct bounce){ .memory = check.memory, .place = *access_check_place(&check) };
        f->peer_access = *why ? PEERS_OUT_OF_REACH : PEERS_REACHED;
        if (*why)
            access_say(c, why);
        else
            peer_access_add_all(c->group, l->id, l->count); /* messages use the result, too */
    } /* after a failure other devices may still use the memory, so it is never freed */
    free(all);
    free(check.pattern);
    free(check.seen);
    return status;
}
