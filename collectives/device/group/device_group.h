/* SPDX-License-Identifier: Apache-2.0 */
/* device_group.h - what a group keeps for calls on device memory, and what a path is.
 *
 * A path carries out such a call: nccl, fused and staged, a folder each beside this one.
 * device_call.c, above them, has their structs in one array and tries them in order.  A path first
 * decides, by what all ranks know or exchange in the call, then carries out; so no rank waits in
 * one path for a rank that took another.
 *
 * In the group's first such call the ranks gather which device each has: the device table, by which
 * all of them decide alike. */
#ifndef COLLECTIVES_DEVICE_GROUP_DEVICE_GROUP_H
#define COLLECTIVES_DEVICE_GROUP_DEVICE_GROUP_H

#include "collectives/core/algorithm_overrides.h"
#include "collectives/core/call.h"

/* ---- Paths ------------------------------------------------------------------------------- */

/* The result of a call on a path; of several leaders' results the largest counts. */
enum path_result {
    PATH_OK = 1,
    PATH_HOST_SYNC, /* streams can't hand this call over; it may do if the hosts wait for them */
    PATH_SKIP_CALL, /* this call takes another path */
    PATH_DISABLE    /* this call and every later one take another path */
};

struct device_path {
    const char *name; /* for CT_DEVICE, CT_<OPERATION> and messages */

    /* These decide by what all ranks know, so alike on all of them: */

    /* Could it make the call?  NULL: any. */
    int (*can)(const struct call *c);
    /* Must a later call of the group yet begin something?  NULL: never. */
    int (*is_to_come)(const ct_group *group);
    /* What is missing before such a call can be captured, as a sentence; NULL: nothing. */
    const char *(*missing_for_capture)(const struct call *c);

    /* These decide by what this rank knows, in the thread that makes the call, while an earlier
     * call may run: */

    /* Can streams hand the call over to each other?  NULL: they never can. */
    int (*hands_over)(const struct call *c);
    /* Does it need more memory of libct's own on the device than there is?  NULL: it never does. */
    int (*needs_memory)(const struct call *c);

    /* All ranks make these calls together, in this order: */

    /* In each call whose sizes all ranks know, while is_to_come().  NULL: there is nothing. */
    ct_status (*begin_group)(struct call *c);
    /* PATH_OK, as far as this rank knows: then run() follows.  Writes no buffer of the caller. */
    ct_status (*prepare)(struct call *c, enum path_result *result);
    /* If not PATH_OK, then on no rank, and no buffer of the caller was written. */
    ct_status (*run)(struct call *c, enum path_result *result);

    /* A call of the group failed, on any path, so the group makes no more calls: frees what other
     * processes wait for.  NULL: there is nothing. */
    void (*fail_group)(ct_group *group);
    /* The group ends: frees path_state.own, if there is one. */
    void (*end_group)(ct_group *group);
};

struct path_state {
    void *_Atomic own;    /* device_path_own(); NULL: not needed yet */
    _Atomic int disabled; /* no call of the group takes it any more, on any rank */
    char why[300]; /* why NCCL is disabled, for the user; "": the log says it, or it is not */
};

/* ---- The group ----------------------------------------------------------------------------- */

/* The leader of a device: of the group's ranks that have the device the lowest.  It launches the
 * kernels for all of them. */
struct leaders {
    int count, ranks;        /* of leaders; of ranks */
    int *rank;               /* [count] their group ranks, ascending */
    int *of;                 /* [ranks] index of the leader of that rank's device */
    unsigned char (*id)[16]; /* [count] of their devices */
    int mine;                /* index of this rank among the leaders; -1: it is none */
};

void leaders_free(struct leaders *leaders); /* all zero is fine */

/* Which devices the ranks have, as all of them know it. */
struct device_table {
    int known;
    int apart;                 /* each rank has a device of its own */
    int with_nccl;             /* each rank's libct was built with NCCL */
    enum path_number override; /* CT_DEVICE of all ranks; PATH_NONE also where they differ */
    int by_streams;            /* CT_HANDOVER=host on no rank */
    struct place place;        /* this rank's */
    struct leaders leaders;
};

struct device_group {
    struct device_table table;
    struct path_state path[PATH_COUNT];
    struct gate_limit limit; /* of the call that runs */
    _Atomic unsigned
        to_come; /* a bit for each path that is_to_come(): for threads that make calls */
};

struct device_group *
device_group_of(ct_group *group); /* made with the first call; NULL: no memory */

/* What a path keeps for a group: so many bytes, zero at first; NULL: no memory. */
void *device_path_own(ct_group *group, enum path_number path, size_t bytes);

static inline const struct leaders *device_leaders(const ct_group *group)
{
    return &group->device->table.leaders;
}

/* The path that an operation's override names, else CT_DEVICE; PATH_NONE: neither does. */
enum path_number device_override(const struct call *c);
/* The path that is tried first, with that override. */
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
/* With c->place as this rank's device.  CT_ERR_UNSUPPORTED, on all ranks: one has no device. */
ct_status device_table_make(struct call *c, struct device_table *table);

#endif
