/* SPDX-License-Identifier: Apache-2.0 */
/* group.h - a group: ranks that call collectives together and send each other messages.
 *
 * A root group is the default group ("world") or a group of ct_create_group().  A root owns a
 * mesh.  All groups that are created from a root share the root's mesh, and are destroyed with the
 * root at the latest. */
#ifndef RUNTIME_GROUP_GROUP_H
#define RUNTIME_GROUP_GROUP_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/device/pinned_pool.h"
#include "runtime/group/stop_schedule.h"
#include "runtime/messaging/group_channel.h"
#include "runtime/monitor/flight_recorder.h"
#include "runtime/reduction/combine.h"
#include "runtime/transport/mesh.h"
#include "runtime/types/call_signature.h"

struct queue;           /* task_queue.c */
struct shm_group;       /* shm/shm_group.h */
struct choices;         /* collectives/core/algorithm_overrides.h */
struct network;         /* collectives/core/network_model.h */
struct coalesced;       /* collectives/core/coalesce.c */
struct executor;        /* collectives/core/call.h */
struct device_group;    /* collectives/device/group/device_group.h */
struct space;           /* memory_kind.h */
struct group_extension; /* group_extension.h */
struct access_set;      /* group_device.c */
struct message_carrier; /* collectives/core/message_carrier.h */
struct mpi_group;       /* collectives/mpi/mpi_group.h */

/* Counts the groups of a parent that were created with local_sync from one list of ranks.  Only
 * group_new.c uses it. */
struct list_births {
    struct list_births *next;
    uint64_t list, count; /* a hash of the list; the number of groups created from the list */
};

/* How long a call may take. */
struct limit {
    int ms;
    const char *by; /* what set the limit, for error messages: "CT_TIMEOUT_MS", "default" */
};

enum order_rule { ORDER_NODES, ORDER_RANK, ORDER_FAST }; /* values of CT_ORDER; group.c */

/* The failure of a group.  Only group_failure.c writes this struct. */
struct failure_state {
    /* Protects what, told and death.  A thread that also needs the transport's lock locks the
     * transport first. */
    pthread_mutex_t lock;
    struct group_failure what; /* why the group has failed; valid unless status is CT_OK */
    /* The pending failures, which concern calls that this rank has not begun.  from_call is 0 if
     * there is no such failure.  Another rank reported `told`.  `death` comes from a death notice,
     * and this rank does not send it to other ranks. */
    struct group_failure told, death;
    _Atomic uint64_t pending; /* number of the first call that will fail; 0 if none will */
    _Atomic int status;       /* CT_OK while the group has not failed.  Waits of calls read it */
    /* 1 if the group has failed or another rank reported a failure.  Ends waits outside of
     * collectives, such as the creation of a group from this group. */
    _Atomic int reported;
    /* 1 if `reported` is 1 or a member died.  Ends all waits for messages. */
    _Atomic int interrupted;
    _Atomic int returned; /* 1 if a call of this rank has returned the failure's status */
};

/* The identity of a group among the groups of its root. */
struct group_identity {
    uint64_t id;
    uint64_t parent_id; /* id of the group from which this group was created; 0 for a root */
    uint64_t born_in;   /* number of the parent's call that created this group; 0 without a call */
    uint64_t born;      /* number of groups created from this group; goes into their ids */
    struct list_births *births; /* counts of the groups created from this group with local_sync */
};

/* The order in which the group's reductions combine the values of the ranks. */
struct group_order {
    enum order_rule rule;
    int is_wished;             /* 1 if CT_ORDER is set */
    struct fold fold;          /* sources, nodes and node_end; each call adds dtype and op */
    int hosts;                 /* number of hosts that have ranks of the group */
    int host_least, host_most; /* number of the group's ranks on its smallest and largest host */
    int *node_end;             /* [hosts] the index in fold_rank behind each host's last rank */
    int *fold_rank;            /* [size] all group ranks, sorted by host, then by rank */
    int *fold_at;              /* [size] the index of each group rank in fold_rank */
};

/* The algorithms that the group's calls may use. */
struct group_algorithms {
    struct choices *choices; /* this group's own if owns_choices is 1, else the root's */
    int owns_choices;
    struct network *network; /* collectives/core/network_model.h; this group's own */
    /* The overrides given for this group, or NULL.  ct_shrink_group() passes them on to the group
     * of the survivors. */
    char *overrides;
    const char *_Atomic last; /* algorithm of the last call; NULL before the first call */
};

/* Asynchronous calls and messages.  The first use of a queue creates it; before that it is NULL. */
struct group_async {
    struct queue *queue;         /* runs asynchronous calls */
    struct queue *landings;      /* runs waits for messages that a stream waits for */
    struct queue *watches;       /* watches calls that streams hand over to the device */
    struct coalesced *coalesced; /* calls since ct_coalesce_begin(); NULL outside of such a block */
    pthread_mutex_t lock;        /* protects `works` */
    struct group_work *works;    /* list of the works that ct_wait() has not freed */
};

/* The state of the group's calls and messages on device memory. */
struct group_on_device {
    const struct executor *executor; /* runs calls on device memory; extension->open() sets it */
    void *stream;                    /* the stream that ct_set_stream() set */
    /* How far the group's calls in streams have come; device_call.c defines the values. */
    _Atomic int in_streams;
    struct pinned_pool pinned; /* pinned host memory for messages */
    int no_rendezvous;         /* 1 (CT_DEVICE=staged) if messages use no device rendezvous */
    /* The pairs of devices that passed the peer-access check; group_device.c. */
    struct access_set *_Atomic peer_access;
    /* The kind of memory in which messages have mapped memory of peers; NULL if none has. */
    const struct space *_Atomic maps_from;
};

struct ct_group {
    struct mesh *mesh;
    const struct group_extension *extension; /* functions of the layers above */
    pid_t maker;                             /* the process that created the group; forks.h */
    struct ct_group *root;
    struct ct_group *next;    /* the next group of the root; in the root, its first group */
    pthread_mutex_t children; /* in the root: protects the list that `next` links */
    /* In the root: the store of its rendezvous.  The root holds the store, since the survivors of a
     * failure meet there. */
    ct_store *store;
    int shrinks; /* number of tries of ct_shrink_group() so far */
    struct group_identity identity;
    char name[64];
    int member;                  /* 1 if this rank is a member of the group */
    int rank, size;              /* rank is -1 if this rank is not a member */
    int *ranks;                  /* [size] the members' ranks in the mesh */
    struct limit limit;          /* of each call */
    _Atomic int next_timeout_ms; /* limit of the next call only; 0 if `limit` applies */
    uint64_t seq;                /* number of collectives that this rank has started */
    uint32_t history;            /* a hash of the collectives that this rank has started */
    struct stop_schedule stop;   /* of ct_should_stop() */
    /* The memory that the group's ranks on this host share.  NULL if this host has only one rank of
     * the group, or sharing is not possible or not needed. */
    struct shm_group *host_shm;
    struct shm_group *shm; /* host_shm if all ranks of the group are on this host; else NULL */
    struct group_order order;
    struct group_algorithms algorithms;
    /* extension->open() may set the next three fields. */
    const char *backend;                   /* "cpu" or "mpi" */
    const struct message_carrier *carrier; /* for messages of algorithms; NULL for libct's links */
    struct mpi_group *mpi;                 /* state of backend "mpi"; else NULL */
    struct group_async async;
    struct device_group *device; /* for calls on device memory; NULL before the first such call */
    struct group_on_device on_device;
    struct record record;     /* the group's line in the control page */
    _Atomic uint64_t running; /* number of the collective that runs now; 0 between collectives */
    _Atomic uint64_t begun;   /* number of the last collective that this rank began */
    struct failure_state failure;
    uint16_t traced;        /* the group's index in the trace */
    struct channel channel; /* of the group's messages; reports failures to group_fail_told() */
};

/* The part of a work that the group uses.  The group frees the works for which the program has not
 * waited. */
struct group_work {
    struct group_work *next, **link; /* link: the pointer that points to this work */
    void (*free)(struct group_work *work);
    const char *verb; /* name of the call, such as "isend"; a constant */
    uint64_t seq;     /* number of the collective; 0 for a message */
};
/* Adds a work to the group's list. */
void group_keep_work(ct_group *group, struct group_work *work);
/* Removes a work from the group's list.  The caller frees the work. */
void group_forget_work(ct_group *group, struct group_work *work);

/* The parameters of a new group.  group_new.c fills them in, and group_create() reads them. */
struct group_plan {
    const int *ranks; /* [size] the members' ranks in the mesh */
    int size;
    uint64_t id;
    /* number of the parent's call in which all members agreed on the group; 0 without a call */
    uint64_t born_in;
    struct limit limit; /* of each call */
    const char *name;
    const char *algorithms; /* the user's overrides; NULL to use those of the root group */
};

/* Returns the id of the group's channel: for point-to-point messages if point_to_point is 1, for
 * collectives if it is 0. */
static inline uint64_t group_channel(const ct_group *group, int point_to_point)
{
    return group->identity.id * 2 + (uint64_t)point_to_point;
}

/* Writes "world, rank 2" to `text` and returns `text`.  If the members' ranks differ from their
 * ranks in the root, writes "rows, rank 2 (rank 6 of world)", since error messages use the ranks in
 * the root. */
const char *group_here(const ct_group *group, char *text, size_t size);

ct_group *default_group(void); /* returns NULL before init and after destroy */
void default_group_set(ct_group *group);
/* Forgets the default group in a child of fork().  The group belongs to the parent, and the child
 * may create its own default group. */
void default_group_forget(void); /* init_process_group.c */

/* Returns CT_ERR_INVALID for a group that this process must not use.  The error message says that
 * the group was destroyed, or that another process created the group before fork(). */
ct_status group_refuse_child(const ct_group *group);
/* Sets *resolved to the group, or to the default group if `group` is NULL.  Returns CT_ERR_INVALID
 * if there is no default group, if the group was destroyed, or in a child of fork().
 * group_resolve_member() also returns CT_ERR_NOT_MEMBER if this rank is not a member. */
ct_status group_resolve(ct_group *group, ct_group **resolved);
ct_status group_resolve_member(ct_group *group, ct_group **resolved);

ct_status group_create_root(struct mesh *mesh, ct_store *store, const char *name,
                            struct limit limit, const char *overrides,
                            const struct group_extension *extension, ct_group **group);
ct_status group_options_check(const ct_group_options *options);
ct_status group_create(ct_group *parent, const struct group_plan *plan, ct_group **group);
/* Destroys the group.  If the group is a root, also destroys the root's groups and the mesh. */
void group_destroy(ct_group *group);

/* Makes the group fail with `status` and the error message of ct_last_error(), unless the group has
 * failed before.  Returns status.  The other members can still finish the calls before the call
 * that runs now. */
ct_status group_fail(ct_group *group, ct_status status);
/* Makes the group fail with CT_ERR_ABORTED and the error message of ct_last_error(). */
void group_abort(ct_group *group);
/* Records a failure that a FAILURE frame of another rank reports. */
void group_fail_told(void *group, const struct group_failure *failure);
/* Records the failure, if any, that another rank of this host has written into the group's shared
 * memory. */
void group_look_for_failure(ct_group *group);
/* Does one step of a wait that does not sleep on the doorbell (waiter.h).  Checks for death
 * notices, moves messages, and checks the group's shared memory for a failure. */
void group_poll(ct_group *group);
/* The function mesh->on_wake; arg is the root.  Checks the shared memory of each group of the root
 * for a failure. */
void group_look_at_all(void *arg);
/* The function mesh->on_death.  Records the peer's death in each group of the root that has the
 * peer as a member. */
void group_member_died(void *root, int peer);
/* Records the deaths of members whose notices came before the group was created. */
void group_look_for_deaths(ct_group *group);

/* Returns the limit of a call that begins now.  A limit of ct_set_next_timeout() is used up. */
static inline struct limit group_limit(ct_group *group)
{
    const int next = atomic_load_explicit(&group->next_timeout_ms, memory_order_relaxed);

    if (next > 0 && atomic_exchange(&group->next_timeout_ms, 0) > 0)
        return (struct limit){ next, "ct_set_next_timeout()" };
    return group->limit;
}

/* Returns CT_OK, or the status with which the group has failed. */
ct_status group_check(ct_group *group);
/* Begins a collective with the number `seq`, or a message or the creation of a group with seq 0.
 * Checks for death notices.  Returns the status of the failure if the group has failed, or if a
 * pending failure concerns this call.  A pending death does not concern a call with seq 0.  If such
 * a call fails while an earlier collective can still be finished, the group does not fail. */
ct_status group_begin(ct_group *group, uint64_t seq);
static inline void group_end(ct_group *group)
{
    atomic_store_explicit(&group->running, 0, memory_order_relaxed);
}
/* Returns CT_ERR_MISMATCH if a mismatch was found after this rank had finished its part of the
 * call, so that no call has returned the mismatch.  Else returns CT_OK.  ct_destroy_process_group()
 * returns this status. */
ct_status group_unreturned_mismatch(ct_group *group);
/* Returns 1 if group_begin() of the next collective will fail. */
int group_fails_next_call(ct_group *group);
/* Finds the cause after collective `seq` (0 for a message) failed with `status`, perhaps only
 * because a wait was interrupted.  If the group has a failure, sets ct_last_error() to the
 * failure's error message and returns the failure's status.  Else returns `status`. */
ct_status group_cause(ct_group *group, ct_status status, uint64_t seq);

/* Writes ct_last_blame() into the control page, for ctrun, after a message failed and the group did
 * not. */
void group_note_blame(ct_group *group);

/* ---- timeout_words.c -------------------------------------------------------- */

/* Writes "gave up after 3012 ms (limit 3000 ms, set by CT_TIMEOUT_MS)" to `text`.  started: ms of
 * clock_ms(). */
void timeout_gave_up(const struct limit *limit, int64_t started, char *text, size_t size);

/* Writes to `text` the current or last call of each member that has not begun call `seq`, according
 * to the members' control pages: "; rank 2 is in no call of the group since barrier #11, ...".  The
 * text is for the end of an error message, and is "" if this rank can read no such page.  Returns
 * `text`. */
const char *where_are_missing(const ct_group *group, uint64_t seq, char *text, size_t size);

/* Returns the rank to blame for a timeout of call `seq`, which waited for the rank in `awaited`.
 * That is a stopped rank, else a rank that has not begun the call, else the awaited rank, as far as
 * this host knows.  Writes the reason to `text`. */
struct blame late_rank(const ct_group *group, uint64_t seq, struct blame awaited, char *text,
                       size_t size);

/* Returns 1 if `late` says that the rank is stopped, or if the rank's control page shows that the
 * rank has not begun call `seq`. */
int is_known_late(const ct_group *group, uint64_t seq, struct blame late);

/* Returns the blame for a timeout of a message, which waited for the member.  Writes to `text` that
 * the member is stopped, or the member's current or last call, or "" if this host knows neither. */
struct blame late_peer(const ct_group *group, int member, char *text, size_t size);

#endif
