/* SPDX-License-Identifier: Apache-2.0 */
/* group.h - ranks that make calls together.
 *
 * A root group (the world, or one of ct_create_group) owns a mesh.  The groups made from the root
 * share that mesh and end with the root at the latest. */
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
struct coalesced;       /* collectives/core/coalesce.c */
struct executor;        /* collectives/core/call.h */
struct device_group;    /* collectives/device/group/device_group.h */
struct space;           /* memory_kind.h */
struct group_extension; /* group_extension.h */
struct access_set;      /* group_device.c */
struct message_carrier; /* collectives/core/message_carrier.h */
struct mpi_group;       /* collectives/mpi/mpi_group.h */

/* Counts the groups that were made of one list of ranks with local_sync; group_new.c. */
struct list_births {
    struct list_births *next;
    uint64_t list, count;
};

/* How long a call may take, and what set that, for messages. */
struct limit {
    int ms;
    const char *by;
};

enum order_rule { ORDER_NODES, ORDER_RANK, ORDER_FAST }; /* CT_ORDER; group.c */

/* How a group fails; only group_failure.c writes it. */
struct failure_state {
    pthread_mutex_t lock; /* over the three below; taken last, also after the transport's lock */
    struct group_failure what; /* why the group has failed */
    /* Pending failures; from_call 0: none.  told: another rank has reported it.  death: from a
     * death notice; this rank has not sent it to other ranks. */
    struct group_failure told, death;
    _Atomic uint64_t pending; /* the first call that will fail; 0: no failure is pending */
    _Atomic int status;       /* CT_OK: the group has not failed.  Waits of calls read it */
    _Atomic int reported;     /* failed, or another rank told of a failure: ends the other waits */
    _Atomic int interrupted;  /* that, or a rank died: ends waits in ct_send and ct_recv */
    _Atomic int returned;     /* a call of this rank has returned its status */
};

/* A group's place among the groups of its root. */
struct group_identity {
    uint64_t id;
    uint64_t parent_id; /* id of the group from which it was made; 0: a root */
    uint64_t born_in;   /* number of the parent's call that made it; 0: made without a call */
    uint64_t born;      /* how many groups were made from this group, for their ids */
    struct list_births *births;
};

/* The order in which a group's reductions fold: rank by rank, or host by host. */
struct group_order {
    enum order_rule rule;
    int is_wished;             /* CT_ORDER is set */
    struct fold fold;          /* nodes and node_end */
    int hosts;                 /* number of hosts that have ranks of the group */
    int host_least, host_most; /* ranks of it on its smallest and on its largest host */
    int *node_end;             /* [hosts] where each host's ranks end in fold_rank */
    int *fold_rank;            /* [size] group ranks host by host, as they are folded */
    int *fold_at;              /* [size] position of each group rank in fold_rank */
};

/* Which algorithms a group's calls take. */
struct group_algorithms {
    struct choices *choices; /* the root's, unless owns_choices */
    int owns_choices;
    /* overrides given for this group, which a group of its survivors also gets; NULL: none */
    char *overrides;
    const char *_Atomic last; /* algorithm of the last call; NULL: no call yet */
};

/* Calls that the program does not wait for. */
struct group_async {
    struct queue *queue;         /* of asynchronous calls; NULL: not made yet */
    struct queue *landings;      /* of messages that streams wait for; likewise */
    struct queue *watches;       /* of calls that streams hand over; likewise */
    struct coalesced *coalesced; /* calls since ct_coalesce_begin(); NULL: not collecting */
    pthread_mutex_t lock;        /* over works */
    struct group_work *works;    /* works that ct_wait() has not freed */
};

/* Device memory in a group's calls and messages. */
struct group_on_device {
    const struct executor *executor; /* runs device calls; set by extension->open() */
    void *stream;                    /* ct_set_stream() */
    /* what calls have learnt about stream hand-over (collectives/device/device_call.c) */
    _Atomic int in_streams;
    struct pinned_pool pinned; /* of messages */
    int no_rendezvous;         /* CT_DEVICE=staged: messages make no device rendezvous */
    /* group_device.c: devices that passed the peer-access check */
    struct access_set *_Atomic peer_access;
    /* where messages have mapped memory of peers; NULL: nowhere */
    const struct space *_Atomic maps_from;
};

struct ct_group {
    struct mesh *mesh;
    const struct group_extension *extension; /* functions of the layers above */
    pid_t maker;                             /* the process that made the group, see forks.h */
    struct ct_group *root;
    struct ct_group *next;    /* root: its first group; other groups: the next one */
    pthread_mutex_t children; /* root: over next */
    /* root: the store of its rendezvous, at which survivors meet again; the root holds the store */
    ct_store *store;
    int shrinks; /* tries of ct_shrink_group() */
    struct group_identity identity;
    char name[64];
    int member;                  /* 0: this rank is not in the group */
    int rank, size;              /* rank -1: not a member */
    int *ranks;                  /* [size] in the mesh */
    struct limit limit;          /* of each call */
    _Atomic int next_timeout_ms; /* only of the next call; 0: use limit */
    uint64_t seq;                /* collective calls started */
    uint32_t history;            /* a hash of these calls */
    struct stop_schedule stop;   /* of ct_should_stop() */
    /* Memory that the group's ranks on this host share.  NULL: only one rank is here, or sharing is
     * not possible. */
    struct shm_group *host_shm;
    struct shm_group *shm; /* = host_shm if all ranks are on this host; else NULL */
    struct group_order order;
    struct group_algorithms algorithms;
    const char *backend; /* "cpu"; extension->open() may change it and the next two */
    const struct message_carrier *carrier; /* of algorithms' messages; NULL: libct's links */
    struct mpi_group *mpi;
    struct group_async async;
    struct device_group *device; /* for calls on device memory; NULL: no such call yet */
    struct group_on_device on_device;
    struct record record;     /* its line in the control page */
    _Atomic uint64_t running; /* number of the call that runs; 0: none */
    _Atomic uint64_t begun;   /* number of the last call that began */
    struct failure_state failure;
    uint16_t traced;        /* its index in the trace */
    struct channel channel; /* of the group's messages; calls group_fail_told() for failures */
};

/* The part of a work that the group uses.  The group frees the works that the program has not
 * waited for. */
struct group_work {
    struct group_work *next, **link;
    void (*free)(struct group_work *work);
    const char *verb; /* "isend", a constant */
    uint64_t seq;     /* the number of its collective call; 0: a message */
};
void group_keep_work(ct_group *group, struct group_work *work);
void group_forget_work(ct_group *group, struct group_work *work);

/* The plan of a new group.  group_new.c fills it in, group.c makes the group. */
struct group_plan {
    const int *ranks; /* in the mesh */
    int size;
    uint64_t id;
    uint64_t born_in;   /* the parent's call in which all members agreed on the group; 0: none */
    struct limit limit; /* of each call */
    const char *name;
    const char *algorithms; /* the user's overrides; NULL: as in the root group */
};

/* The number of the group's channel for collectives or for point-to-point messages. */
static inline uint64_t group_channel(const ct_group *group, int point_to_point)
{
    return group->identity.id * 2 + (uint64_t)point_to_point;
}

/* Writes "world, rank 2" or, if the ranks differ from the root's, "rows, rank 2 (rank 6 of world)".
 * Sentences about failures name ranks by their number in the root group. */
const char *group_here(const ct_group *group, char *text, size_t size);

ct_group *default_group(void); /* NULL before init */
void default_group_set(ct_group *group);
/* Forgets the default group in a child of fork().  The group belongs to the parent, and the child
 * may init its own world. */
void default_group_forget(void); /* init_process_group.c */

/* Fails with CT_ERR_INVALID: this process is a child of the one that made the group. */
ct_status group_refuse_child(const ct_group *group);
/* Gives the group, or the default group for NULL.  Fails without a default group and in a child of
 * fork().  group_resolve_member() also fails for a non-member. */
ct_status group_resolve(ct_group *group, ct_group **resolved);
ct_status group_resolve_member(ct_group *group, ct_group **resolved);

ct_status group_create_root(struct mesh *mesh, ct_store *store, const char *name,
                            struct limit limit, const char *overrides,
                            const struct group_extension *extension, ct_group **group);
ct_status group_options_check(const ct_group_options *options);
ct_status group_create(ct_group *parent, const struct group_plan *plan, ct_group **group);
void group_destroy(ct_group *group); /* destroys a root's groups and mesh, too */

/* Makes the group fail with `status` and ct_last_error(), unless it has failed before.  Returns
 * status.  The other members can still finish the calls before the one that runs now. */
ct_status group_fail(ct_group *group, ct_status status);
void group_abort(ct_group *group); /* ct_last_error() says why */
/* Records a failure that a frame reports. */
void group_fail_told(void *group, const struct group_failure *failure);
/* Records a failure that another rank of this host has written into the group's shared memory. */
void group_look_for_failure(ct_group *group);
/* Does one step of a wait that does not sleep on the doorbell (waiter.h): looks for death notices,
 * moves messages, and looks for a failure in shared memory. */
void group_poll(ct_group *group);
/* mesh->on_wake of a root: looks for failures of all its groups in the memory that ranks of this
 * host share. */
void group_look_at_all(void *arg);
/* mesh->on_death of a root: records the peer's death in all its groups that have the peer. */
void group_member_died(void *root, int peer);
/* Records death notices that came before the group was made. */
void group_look_for_deaths(ct_group *group);

/* The limit of a call that begins now. */
static inline struct limit group_limit(ct_group *group)
{
    const int next = atomic_load_explicit(&group->next_timeout_ms, memory_order_relaxed);

    if (next > 0 && atomic_exchange(&group->next_timeout_ms, 0) > 0)
        return (struct limit){ next, "ct_set_next_timeout()" };
    return group->limit;
}

/* CT_OK, or why the group has failed. */
ct_status group_check(ct_group *group);
/* Begins a call: looks for death notices, and fails at once if the group has failed or fails in
 * this call.  seq 0: a message, or the making of a group.  A pending death of another member does
 * not concern it.  While an earlier call still runs, only the message fails, not the group. */
ct_status group_begin(ct_group *group, uint64_t seq);
static inline void group_end(ct_group *group)
{
    atomic_store_explicit(&group->running, 0, memory_order_relaxed);
}
/* Returns a mismatch that no call has returned, because it was found after this rank had finished
 * its part.  Destroying the group returns it. */
ct_status group_unreturned_mismatch(ct_group *group);
/* 1: group_begin() of the next call will fail. */
int group_fails_next_call(ct_group *group);
/* Finds the cause of a call's failure.  Call `seq` (0: a message) failed with status, perhaps only
 * because a wait was interrupted.  If the group has a failure, its status is returned and its
 * sentence set instead. */
ct_status group_cause(ct_group *group, ct_status status, uint64_t seq);

/* Writes ct_last_blame() into the control page for ctrun, after a message failed but not the
 * group. */
void group_note_blame(ct_group *group);

/* ---- timeout_words.c -------------------------------------------------------- */

/* Writes "gave up after 3012 ms (limit 3000 ms, set by CT_TIMEOUT_MS)". */
void timeout_gave_up(const struct limit *limit, int64_t started, char *text, size_t size);

/* Words, for the end of a sentence, what the members do that have not begun call `seq`, by their
 * control pages: "; rank 2 is in no call of the group since barrier #11, ...".  "": no such page
 * can be read from here. */
const char *where_are_missing(const ct_group *group, uint64_t seq, char *text, size_t size);

/* Call `seq` timed out while it waited for the rank in `awaited`.  Returns the rank because of
 * which it failed, as far as this host knows: a stopped rank, else a rank that has not begun the
 * call, else the awaited rank.  text: the reason in words. */
struct blame late_rank(const ct_group *group, uint64_t seq, struct blame awaited, char *text,
                       size_t size);

/* Says whether this host knows that the rank is stopped or late. */
int is_known_late(const ct_group *group, uint64_t seq, struct blame late);

/* Does the same for a message that timed out while it waited for a member.  text: the member's
 * current or last call. */
struct blame late_peer(const ct_group *group, int member, char *text, size_t size);

#endif
