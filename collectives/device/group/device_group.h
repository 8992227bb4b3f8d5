/* SPDX-License-Identifier: Apache-2.0 */
/* device_group.h - the state of a group for calls on device memory, and the interface of a path.
 *
 * A path is a way to run such a call.  The paths are nccl, fused and staged, each in a folder next
 * to this folder. device_call.c has the paths in an array and tries them in order.  A path first
 * decides whether it runs the call, from facts that all ranks know or exchange in the call.  Only
 * then it runs the call.  So no rank waits in a path for a rank that chose another path.
 *
 * In the group's first call on device memory each rank gathers the devices of all ranks.  From this
 * device table all ranks make the same decisions. */
#ifndef COLLECTIVES_DEVICE_GROUP_DEVICE_GROUP_H
#define COLLECTIVES_DEVICE_GROUP_DEVICE_GROUP_H

#include "collectives/core/algorithm_overrides.h"
#include "collectives/core/call.h"

/* ---- Paths ------------------------------------------------------------------------------- */

/* The result of a path for a call.  If several leaders have different results, all ranks use the
 * largest. */
enum path_result {
    PATH_OK = 1,
    /* Streams can't hand this call over.  The path may run the call if hosts wait for devices. */
    PATH_HOST_SYNC,
    PATH_SKIP_CALL, /* this call must use another path */
    PATH_DISABLE    /* this call and all later calls of the group must use other paths */
};

struct device_path {
    const char *name; /* as in CT_DEVICE, in CT_<OPERATION> and in messages */

    /* The next functions use only facts that all ranks know, so they return the same on all ranks.
     */

    /* Returns 1 if the path could run the call.  NULL if the path can run any call. */
    int (*can)(const struct call *c);
    /* Returns 1 if begin_group() must still set up the path in a later call of the group.  NULL if
     * it never must. */
    int (*is_to_come)(const ct_group *group);
    /* Returns a text that tells what must happen before such a call can be captured, or NULL if
     * nothing is missing. */
    const char *(*missing_for_capture)(const struct call *c);

    /* The next functions use facts that only this rank knows.  They run in the thread that makes
     * the call, perhaps while an earlier call runs. */

    /* Returns 1 if the ranks' streams can hand the call over to each other.  NULL if they never
     * can. */
    int (*hands_over)(const struct call *c);
    /* Returns 1 if the call needs more device memory of libct than is allocated.  NULL if calls of
     * the path need no such memory. */
    int (*needs_memory)(const struct call *c);

    /* All ranks call the next functions together, in this order. */

    /* Sets up the path for the group, if is_to_come() returns 1.  Runs in each call for which all
     * ranks know all sizes.  NULL if the path needs no setup. */
    ct_status (*begin_group)(struct call *c);
    /* Prepares the call, without a write to the caller's buffers.  Sets *result to PATH_OK if this
     * rank knows of no obstacle; then run() follows. */
    ct_status (*prepare)(struct call *c, enum path_result *result);
    /* Runs the call.  If *result is not PATH_OK, all ranks have the same result, and no buffer of
     * the caller was written. */
    ct_status (*run)(struct call *c, enum path_result *result);

    /* Frees memory for which other processes wait.  Called after a call of the group failed on any
     * path; the group then makes no more calls.  NULL if the path has no such memory. */
    void (*fail_group)(ct_group *group);
    /* Frees path_state.own when the group ends.  Called only if ->own is set. */
    void (*end_group)(ct_group *group);
};

struct path_state {
    void *_Atomic own;    /* memory from device_path_own(); NULL until needed */
    _Atomic int disabled; /* no rank uses the path for the group's calls any more */
    /* why NCCL is disabled, for error messages; "" if NCCL is not disabled or the reason is only in
     * the log */
    char why[300];
};

/* ---- The group ----------------------------------------------------------------------------- */

/* The leader of a device is the lowest of the group's ranks that use the device.  The leader
 * launches the kernels for all these ranks. */
struct leaders {
    int count, ranks;        /* number of leaders; number of ranks */
    int *rank;               /* [count] the leaders' group ranks, in ascending order */
    int *of;                 /* [ranks] index of the leader of each rank's device */
    unsigned char (*id)[16]; /* [count] ids of the leaders' devices */
    /* index of this rank among the leaders; -1 if this rank is not a leader */
    int mine;
};

void leaders_free(struct leaders *leaders); /* a struct of zeros is allowed */

/* The devices of the group's ranks.  `place` and leaders.mine differ from rank to rank; all other
 * fields are the same on all ranks. */
struct device_table {
    int known;
    int apart;     /* 1 if no two ranks share a device */
    int with_nccl; /* 1 if libct was built with NCCL on every rank */
    /* CT_DEVICE, if all ranks have the same; else PATH_NONE (but see override_of_all()) */
    enum path_number override;
    int by_streams;     /* 1 if no rank has CT_HANDOVER=host */
    struct place place; /* this rank's device */
    struct leaders leaders;
};

struct device_group {
    struct device_table table;
    struct path_state path[PATH_COUNT];
    struct gate_limit limit; /* the time limit of the running call */
    _Atomic unsigned
        /* bit i is set while path i must still be set up; read by threads that make calls */
        to_come;
};

struct device_group *
device_group_of(ct_group *group); /* created in the first call; NULL if memory ran out */

/* Returns a path's `bytes` of memory for the group.  The first call allocates this memory and fills
 * it with zeros.  NULL if memory ran out. */
void *device_path_own(ct_group *group, enum path_number path, size_t bytes);

static inline const struct leaders *device_leaders(const ct_group *group)
{
    return &group->device->table.leaders;
}

/* Returns the path that the operation's override sets.  Without an override returns the path of
 * CT_DEVICE, or PATH_NONE if CT_DEVICE sets none. */
enum path_number device_override(const struct call *c);
/* Returns the path that a call tries first.  `override` is the result of device_override(). */
enum path_number device_first_path(const ct_group *group, enum path_number override);

static inline int device_is_disabled(const ct_group *group, enum path_number path)
{
    return atomic_load(&group->device->path[path].disabled);
}

static inline void device_disable(ct_group *group, enum path_number path)
{
    atomic_store(&group->device->path[path].disabled, 1);
}

/* All ranks call the next two functions, in the same order. */

/* Sends `bytes` of each rank to all ranks.  The result in `all` is [size][bytes]. */
ct_status device_gather(struct call *c, const void *mine, size_t bytes, void *all);
/* Fills the table.  This rank's device is c->place.  If a rank has no device, all ranks get
 * CT_ERR_UNSUPPORTED. */
ct_status device_table_make(struct call *c, struct device_table *table);

#endif
