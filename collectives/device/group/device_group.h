/* SPDX-License-Identifier: Apache-2.0 */
/* device_group.h - what a group keeps for calls on device memory, and what a path is.
 *
 * A path is one way to carry out such a call: nccl, fused and staged, a folder each beside this
 * one.  path_select.c, above them, has their structs in one array and tries them in order.  A path
 * first decides, by what all ranks know or have told each other in the call, then carries out; so
 * no rank waits in one path for a rank that took another.
 *
 * In the group's first such call the ranks exchange which device each has: the device table, by
 * which all of them decide alike. */
#ifndef COLLECTIVES_DEVICE_GROUP_DEVICE_GROUP_H
#define COLLECTIVES_DEVICE_GROUP_DEVICE_GROUP_H

#include "collectives/core/algorithm_overrides.h"
#include "collectives/core/call.h"
#include "collectives/device/group/leaders.h"

/* ---- Paths ------------------------------------------------------------------------------- */

/* What came of a call on a path: the larger, the further from "done". */
enum path_result {
    PATH_OK = 1,
    PATH_HOST_SYNC, /* streams can't hand this call over; if the hosts wait for them, it may be done
                     */
    PATH_SKIP_CALL, /* this call takes another path */
    PATH_DISABLE    /* and so does every later one */
};

struct device_path {
    const char *name; /* for CT_DEVICE, CT_<OPERATION> and messages */

    /* By what all ranks know, so the same on all of them: */

    /* Could it make the call?  NULL: any. */
    int (*can)(const struct call *c);
    /* Is something of the group's left to begin, by a later call?  NULL: there never is. */
    int (*is_to_come)(const ct_group *group);
    /* What must have been done before such a call can be captured; NULL, also as its result:
     * nothing. */
    const char *(*missing_for_capture)(const struct call *c);

    /* By what this rank knows, in the thread that makes the call, while an earlier one may run: */

    /* Can streams hand the call over to each other?  NULL: they never can. */
    int (*hands_over)(const struct call *c);
    /* Does it need more memory of libct's own on the device than there is?  NULL: it never does. */
    int (*needs_memory)(const struct call *c);

    /* All ranks make these together, in this order: */

    /* In each call whose sizes all ranks know, until nothing is to come.  NULL: there is nothing.
     */
    ct_status (*begin_group)(struct call *c);
    /* PATH_OK as far as this rank knows: then run() comes.  Nothing of the caller's was written. */
    ct_status (*prepare)(struct call *c, enum path_result *result);
    /* Not PATH_OK, then on no rank, and nothing of the caller's was written. */
    ct_status (*run)(struct call *c, enum path_result *result);

    /* A call of the group failed, on whatever path, so the group makes no more: what others wait
     * for is given back.  NULL: there is nothing. */
    void (*fail_group)(ct_group *group);
    /* The group ends: frees path_state.own.  Only where there is one. */
    void (*end_group)(ct_group *group);
};

struct path_state {
    void *_Atomic own;    /* device_path_own(); NULL: not yet */
    _Atomic int disabled; /* it makes no call of the group any more, on any rank */
    char why[300];        /* NCCL is disabled, for the user; "": not, or the log says it */
};

/* ---- The group ----------------------------------------------------------------------------- */

/* Which devices the ranks have, as all of them know it. */
struct device_table {
    int known;
    int apart;                 /* no two ranks have the same */
    int with_nccl;             /* each rank's libct was built with such a library */
    enum path_number override; /* CT_DEVICE of all ranks; PATH_NONE also where they differ */
    int by_streams;            /* CT_HANDOVER=stream on all ranks */
    struct place place;        /* this rank's */
    struct leaders leaders;
};

struct device_group {
    struct device_table table;
    struct path_state path[PATH_COUNT];
    _Atomic unsigned
        to_come; /* a bit for each path that is_to_come(): for threads that make calls */
};

struct device_group *
device_group_of(ct_group *group); /* made with the first call; NULL: no memory */

/* What a path keeps of a group: so many bytes, all zero when it first needs them; NULL: no memory.
 */
void *device_path_own(ct_group *group, enum path_number path, size_t bytes);

static inline const struct leaders *device_leaders(const ct_group *group)
{
    return &group->device->table.leaders;
}

/* The path that an operation's override names, else CT_DEVICE; PATH_NONE: neither does. */
enum path_number device_override(const struct call *c);
/* The path that is tried first, given that. */
enum path_number device_first_path(const ct_group *group, enum path_number override);

static inline int device_is_disabled(const ct_group *group, enum path_number path)
{
    return atomic_load(&group->device->path[path].disabled);
}

static inline void device_disable(ct_group *group, enum path_number path)
{
    atomic_store(&group->device->path[path].disabled, 1);
}

/* All ranks make these calls, in the same order. */

/* `bytes` of each rank to all of them: all is [size][bytes]. */
ct_status device_gather(struct call *c, const void *mine, size_t bytes, void *all);
/* CT_ERR_UNSUPPORTED, on all ranks: one has no device (ours: c->place). */
ct_status device_table_make(struct call *c, struct device_table *table);

#endif
