/* SPDX-License-Identifier: Apache-2.0 */
/* group.h - ranks that make calls together.
 *
 * A root group (the world, or one of ct_create_group) owns a mesh.  The groups made from it
 * share that mesh and live no longer than it does. */
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

/* How many groups were made of one list of ranks with local_sync; group_new.c */
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

/* How a group fails; written by group_failure.c alone. */
struct failure_state {
    pthread_mutex_t lock;      /* over the three below; taken last, under the transport's, too */
    struct group_failure what; /* why the group has failed */
    /* Pending; from_call 0: none.  The first one another rank has reported, the second one is of a
     * death notice, and this rank has not sent it to others. */
    struct group_failure told, death;
    _Atomic uint64_t pending; /* the first call that will fail; 0: no failure is pending */
    _Atomic int status;       /* CT_OK: the group has not failed.  The waits of calls look at it */
    _Atomic int reported;     /* failed, or another rank told of a failure: ends the other waits */
    _Atomic int interrupted;  /* that, or a rank died: ends waits in ct_send and ct_recv */
    _Atomic int returned;     /* a call of this rank has returned its status */
};

/* Its place among the groups of its root. */
struct group_identity {
    uint64_t id;
    uint64_t parent_id; /* id of the group that it was made from; 0: none */
    uint64_t born_in;   /* number of the call of that group which made it; 0: none did */
    uint64_t born;      /* how many groups were made from this one, for their ids */
    struct list_births *births;
};

/* In which order its reductions fold: rank by rank, or host by host. */
struct group_order {
    enum order_rule rule;
    int is_wished;             /* CT_ORDER is set */
    struct fold fold;          /* nodes and node_end */
    int hosts;                 /* number of hosts of its ranks */
    int host_least, host_most; /* ranks on the smallest and on the largest of them */
    int *node_end;             /* [hosts] where each one's ranks end in fold_rank */
    int *fold_rank;            /* [size] group ranks host by host, as they are folded */
    int *fold_at;              /* [size] where each group rank is in fold_rank */
};

/* Which algorithms its calls take. */
struct group_algorithms {
    struct choices *choices; /* of the root's, unless: */
    int owns_choices;
    /* the overrides that were given for it; NULL: none.  Its survivors get the same */
    char *overrides;
    const char *_Atomic last; /* of the call that was begun last; NULL: none was */
};

/* Calls that the program does not wait for. */
struct group_async {
    struct queue *queue;         /* of asynchronous calls; NULL: none yet */
    struct queue *landings;      /* of messages that streams wait for; likewise */
    struct queue *watches;       /* of calls that streams hand over; likewise */
    struct coalesced *coalesced; /* calls since ct_coalesce_begin(); NULL: none are collected */
    pthread_mutex_t lock;        /* over works */
    struct group_work *works;    /* that ct_wait() has not freed */
};

/* Device memory in its calls and messages. */
struct group_on_device {
    const struct executor *executor; /* of its calls; set by extension->open() */
    void *stream;                    /* ct_set_stream() */
    /* what its calls have learnt about that (collectives/device/device_call.c) */
    _Atomic int in_streams;
    struct pinned_pool pinned; /* of messages */
    int no_rendezvous;         /* CT_DEVICE=staged: not even in messages */
    /* group_device.c: devices that passed the peer-access check */
    struct access_set *_Atomic peer_access;
    /* messages were mapped there from the memory of peers; NULL: none was */
    const struct space *_Atomic maps_from;
};

struct ct_group {
    struct mesh *mesh;
    const struct group_extension *extension; /* functions of the layers above */
    pid_t maker;                             /* the process that made it, forks.h */
    struct ct_group *root;
    struct ct_group *next;    /* root: its groups; others: the next of them */
    pthread_mutex_t children; /* root: over next */
    /* root: the store of its rendezvous, at which survivors meet again; the root holds it */
    ct_store *store;
    int shrinks; /* tries of ct_shrink_group() */
    struct group_identity identity;
    char name[64];
    int member;                  /* 0: the handle of a rank that is not in it */
    int rank, size;              /* rank -1: not a member */
    int *ranks;                  /* [size] in the mesh */
    struct limit limit;          /* of each call */
    _Atomic int next_timeout_ms; /* of the next call alone; 0: limit */
    uint64_t seq;                /* collective calls started */
    uint32_t history;            /* a hash of them */
    struct stop_schedule stop;   /* of ct_should_stop() */
    /* Memory of the group's ranks on this host; NULL: only one is here, or none can be shared. */
    struct shm_group *host_shm;
    struct shm_group *shm; /* the same, if all its ranks are on this host; else NULL */
    struct group_order order;
    struct group_algorithms algorithms;
    const char *backend; /* "cpu", unless extension->open() has set it and what follows */
    const struct message_carrier *carrier; /* of its algorithms' messages; NULL: libct's links */
    struct mpi_group *mpi;
    struct group_async async;
    struct device_group *device; /* for calls on device memory; NULL: there was none */
    struct group_on_device on_device;
    struct record record;     /* its line in the control page */
    _Atomic uint64_t running; /* number of the call that is being run; 0: none */
    _Atomic uint64_t begun;   /* the last number that ever ran */
    struct failure_state failure;
    uint16_t traced;        /* its index in the trace */
    struct channel channel; /* of its messages; calls group_fail_told() for failures */
};

/* A work as its group sees it.  The group frees the works that the program has not waited for. */
struct group_work {
    struct group_work *next, **link;
    void (*free)(struct group_work *work);
    const char *verb; /* "isend", a constant */
    uint64_t seq;     /* the number of its collective call; 0: a message */
};
void group_keep_work(ct_group *group, struct group_work *work);
void group_forget_work(ct_group *group, struct group_work *work);

/* The members of a group to be made; filled by group_new.c, carried out by group.c. */
struct group_plan {
    const int *ranks; /* in the mesh */
    int size;
    uint64_t id;
    uint64_t born_in;   /* the call of the parent by which all members agreed on it; 0: none */
    struct limit limit; /* of each call */
    const char *name;
    const char *algorithms; /* what the user set for algorithms; NULL: as in the root group */
};

/* The channel of its messages. */
static inline uint64_t group_channel(const ct_group *group, int point_to_point)
{
    return group->identity.id * 2 + (uint64_t)point_to_point;
}

/* "world, rank 2".  If its ranks differ from the root's, "rows, rank 2 (rank 6 of world)":
 * sentences about failures name ranks by their number in the root group. */
const char *group_here(const ct_group *group, char *text, size_t size);

ct_group *default_group(void); /* NULL before init */
void default_group_set(ct_group *group);
/* In a child of fork(): the group belongs to its parent, and this process may init a world of
 * its own. */
void default_group_forget(void); /* init_process_group.c */

/* Fails with CT_ERR_INVALID: this process is a child of the one that made the group. */
ct_status group_refuse_child(const ct_group *group);
/* The group itself, or the default one for NULL; fails without one, in a child of fork(), and for a
 * non-member. */
ct_status group_resolve(ct_group *group, ct_group **resolved);
ct_status group_resolve_member(ct_group *group, ct_group **resolved);

ct_status group_create_root(struct mesh *mesh, ct_store *store, const char *name,
                            struct limit limit, const char *overrides,
                            const struct group_extension *extension, ct_group **group);
ct_status group_options_check(const ct_group_options *options);
ct_status group_create(ct_group *parent, const struct group_plan *plan, ct_group **group);
void group_destroy(ct_group *group); /* a root's groups too; its mesh too */

/* The group fails with `status` and ct_last_error(), unless it has failed; gives status back.  The
 * other members can still finish the calls before the one that runs now. */
ct_status group_fail(ct_group *group, ct_status status);
void group_abort(ct_group *group); /* ct_last_error() says why */
void group_fail_told(void *group, const struct group_failure *failure); /* by a frame */
/* Has another rank of this host written a failure into the group's shared memory? */
void group_look_for_failure(ct_group *group);
/* One step of a wait that sleeps on something else than the doorbell (waiter.h): looks for death
 * notices, moves messages, and looks for that failure. */
void group_poll(ct_group *group);
/* mesh->on_wake of a root: looks at all its groups, of which others may have failed in the memory
 * that ranks of this host share. */
void group_look_at_all(void *arg);
/* mesh->on_death of a root: all its groups of which the peer is a member. */
void group_member_died(void *root, int peer);
/* Takes up death notices that came before the group was made. */
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
/* A call begins: it looks for death notices, and fails at once if the group has failed or fails in
 * this call.  seq 0: a message, or what makes a group, which a pending death of another member does
 * not concern; where an earlier call still runs it fails alone. */
ct_status group_begin(ct_group *group, uint64_t seq);
static inline void group_end(ct_group *group)
{
    atomic_store_explicit(&group->running, 0, memory_order_relaxed);
}
/* Returns a mismatch that was found after this rank had finished its part, so that no call has
 * returned it.  Destroying the group returns it. */
ct_status group_unreturned_mismatch(ct_group *group);
/* 1: group_begin() of the next call will fail. */
int group_fails_next_call(ct_group *group);
/* Call `seq` (0: a message) failed with status, perhaps only because a wait was interrupted.  The
 * failure of the group, if there is one, takes the place of status and sentence, and is given back.
 */
ct_status group_cause(ct_group *group, ct_status status, uint64_t seq);

/* Writes ct_last_blame() into the control page, for ctrun, after a message has failed and the group
 * is not broken. */
void group_note_blame(ct_group *group);

/* ---- timeout_words.c -------------------------------------------------------- */

/* "gave up after 3012 ms (limit 3000 ms, set by CT_TIMEOUT)" */
void timeout_gave_up(const struct limit *limit, int64_t started, char *text, size_t size);

/* The status of the members that have not begun call `seq`, by their control pages: "; rank 2 is
 * in no call since barrier #11", for the end of a sentence.  "" when no page can be read from
 * here. */
const char *where_are_missing(const ct_group *group, uint64_t seq, char *text, size_t size);

/* Call `seq` timed out while it waited for the rank in `awaited`.  Returns the rank because of
 * which it failed, as far as this host knows: a stopped rank, else a rank that has not begun the
 * call, else the awaited rank.  text: the same in words. */
struct blame late_rank(const ct_group *group, uint64_t seq, struct blame awaited, char *text,
                       size_t size);

/* Does this host know that the rank is stopped or late? */
int is_known_late(const ct_group *group, uint64_t seq, struct blame late);

/* The same for a message that timed out while it waited for a member.  text: the call in which the
 * member is, or was last. */
struct blame late_peer(const ct_group *group, int member, char *text, size_t size);

#endif
