/* SPDX-License-Identifier: Apache-2.0 */
/* device_group.h - what a group keeps for calls on device memory, and what a path is.
 *
 * A path carries out such a call.  The paths are nccl, fused and staged, each in a folder next to
 * this one.  device_call.c has their structs in one array and tries them in order.  A path first
 * decides whether it makes the call, by what all ranks know or exchange in the call, and then
 * carries it out.  So no rank waits in one path for a rank that took another.
 *
 * In the group's first such call the ranks gather which device each has.  From this device table
 * all of them decide alike. */
#ifndef COLLECTIVES_DEVICE_GROUP_DEVICE_GROUP_H
#define COLLECTIVES_DEVICE_GROUP_DEVICE_GROUP_H

#include "collectives/core/algorithm_overrides.h"
#include "collectives/core/call.h"

/* ---- Paths ------------------------------------------------------------------------------- */

/* The result of a call on a path.  If several leaders have results, the largest one is taken. */
enum path_result {
    PATH_OK = 1,
    PATH_HOST_SYNC, /* streams can't hand this call over; the path may make it if hosts wait for
                       devices */
    PATH_SKIP_CALL, /* this call takes another path */
    PATH_DISABLE    /* this call and every later one take another path */
};

struct device_path {
    const char *name; /* for CT_DEVICE, CT_<OPERATION> and messages */

    /* These decide by what all ranks know, so they give the same on all ranks: */

    /* Says whether the path could make the call.  NULL: it can make any call. */
    int (*can)(const struct call *c);
    /* Says whether a later call of the group must still begin something.  NULL: never. */
    int (*is_to_come)(const ct_group *group);
    /* Says in a sentence what is missing before such a call can be captured; NULL: nothing. */
    const char *(*missing_for_capture)(const struct call *c);

    /* These decide by what this rank knows.  They run in the thread that makes the call, while an
     * earlier call may run: */

    /* Says whether streams can hand the call over to each other.  NULL: they never can. */
    int (*hands_over)(const struct call *c);
    /* Says whether the call needs more of libct's device memory than there is.  NULL: it never
     * does. */
    int (*needs_memory)(const struct call *c);

    /* All ranks make these calls together, in this order: */

    /* Begins what is_to_come() says, in each call whose sizes all ranks know.  NULL: it has nothing
     * to begin. */
    ct_status (*begin_group)(struct call *c);
    /* *result PATH_OK: this rank knows of no obstacle, and run() follows.  Writes no buffer of the
     * caller. */
    ct_status (*prepare)(struct call *c, enum path_result *result);
    /* *result not PATH_OK: all ranks have that result, and no buffer of the caller was written. */
    ct_status (*run)(struct call *c, enum path_result *result);

    /* Frees what other processes wait for, after a call of the group failed on any path, so that
     * the group makes no more calls.  NULL: the path has nothing to free. */
    void (*fail_group)(ct_group *group);
    /* Frees path_state.own when the group ends.  It is called only if ->own is set. */
    void (*end_group)(ct_group *group);
};

struct path_state {
    void *_Atomic own;    /* device_path_own(); NULL: not needed yet */
    _Atomic int disabled; /* no call of the group takes the path any more, on any rank */
    char why[300];        /* why NCCL is disabled, for the user; "": the log says it, or NCCL is not
                             disabled */
};

/* ---- The group ----------------------------------------------------------------------------- */

/* The leader of a device is the lowest of the group's ranks that have the device.  It launches the
 * kernels for all of them. */
struct leaders {
    int count, ranks;        /* number of leaders; of ranks */
    int *rank;               /* [count] the leaders' group ranks, ascending */
    int *of;                 /* [ranks] index of the leader of that rank's device */
    unsigned char (*id)[16]; /* [count] ids of the leaders' devices */
    int mine;                /* index of this rank among the leaders; -1: it is not a leader */
};

void leaders_free(struct leaders *leaders); /* accepts a struct of zeros */

/* Which devices the ranks have.  `place` and leaders.mine are this rank's own; the rest is the same
 * on all ranks. */
struct device_table {
    int known;
    int apart;                 /* each rank has a device to itself */
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
        to_come; /* a bit for each path that is_to_come(), for threads that make calls */
};

struct device_group *
device_group_of(ct_group *group); /* created in the first call; NULL: no memory */

/* Gives `bytes` that a path keeps for a group, zero at first; NULL: no memory. */
void *device_path_own(ct_group *group, enum path_number path, size_t bytes);

static inline const struct leaders *device_leaders(const ct_group *group)
{
    return &group->device->table.leaders;
}

/* Gives the path of the operation's override; without one, that of CT_DEVICE; PATH_NONE: neither is
 * set. */
enum path_number device_override(const struct call *c);
/* Gives the path that is tried first, with that override. */
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

/* Sends `bytes` of each rank to all of them: all is [size][bytes]. */
ct_status device_gather(struct call *c, const void *mine, size_t bytes, void *all);
/* Makes the table, with c->place as this rank's device.  CT_ERR_UNSUPPORTED, on all ranks: a rank
 * has no device. */
ct_status device_table_make(struct call *c, struct device_table *table);

#endif
