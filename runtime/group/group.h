/* SPDX-License-Identifier: Apache-2.0 */
/* group.h - ranks that make calls together.
 *
 * A root group (the world, or one of ct_create_group) owns a mesh; the groups
 * made from it share that mesh and live no longer than it does. */
#ifndef RUNTIME_GROUP_GROUP_H
#define RUNTIME_GROUP_GROUP_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/device/pinned_pool.h"
#include "runtime/group/shm_group.h"
#include "runtime/group/stop_schedule.h"
#include "runtime/messaging/group_channel.h"
#include "runtime/monitor/flight_recorder.h"
#include "runtime/reduction/combine.h"
#include "runtime/transport/mesh.h"
#include "runtime/types/call_signature.h"

struct queue;           /* task_queue.c */
struct choices;         /* collectives/core/algorithm_wishes.h */
struct coalesced;       /* collectives/core/coalesce.c */
struct device_group;    /* collectives/device/group/device_group.h */
struct space;           /* memory_kind.h */
struct group_extension; /* group_extension.h */
struct reached;         /* device_peer_access.c */

/* How many groups were made of one list with local_sync; group_new.c */
struct list_births {
    struct list_births *next;
    uint64_t list, count;
};

/* How long a call may take, and who said so, for messages. */
struct limit {
    int ms;
    const char *by;
};

enum order_rule { ORDER_NODES, ORDER_RANK, ORDER_FAST }; /* fold_order.c */

struct ct_group {
    struct mesh *mesh;
    const struct group_extension *extension; /* what the layers above give to it */
    pid_t maker;                             /* the process that made it, forks.h */
    struct ct_group *root;
    struct ct_group *next;     /* root: its groups; others: the next of them */
    pthread_mutex_t *children; /* root: over next */
    uint64_t id;
    uint64_t parent_id; /* it was made from; 0: from none */
    uint64_t born_in;   /* by which call of that; 0: without one */
    uint64_t born;      /* groups made from this one, for their ids */
    ct_store *store;    /* root: where its ranks met, and would meet again; held */
    int shrinks;        /* tries of ct_shrink_group() */
    struct list_births *births;
    char name[64];
    int member;     /* 0: the handle of a rank that is not in it */
    int rank, size; /* rank -1: not a member */
    int *ranks;     /* [size] in the mesh */
    int timeout_ms;
    const char *timeout_by;      /* who set it, for messages */
    _Atomic int next_timeout_ms; /* of the next call alone; 0: timeout_ms */
    uint64_t seq;                /* collective calls started */
    uint32_t history;            /* a hash of them */
    struct stop_schedule stop;   /* of ct_should_stop() */
    struct flat *flat;           /* NULL: not all on this host, or no memory shared */
    enum order_rule order_rule;
    int order_is_wished;     /* CT_ORDER is set */
    struct fold order;       /* how its reductions fold: nodes and node_end */
    int hosts;               /* on which its ranks are */
    int *node_end;           /* [hosts] where each one's ranks end in fold_rank */
    int *fold_rank;          /* [size] group ranks host by host, as they are folded */
    struct choices *choices; /* of algorithms; of the root's, unless: */
    int owns_choices;
    char *wishes; /* its own, as they were given; NULL: none.  For its survivors */
    const char *_Atomic last_algorithm; /* of the call that was begun last; NULL: none was */
    struct queue *queue;                /* of asynchronous calls; NULL: none yet */
    struct queue *landings;             /* of messages that streams wait for; likewise */
    struct queue *watches;              /* of calls that streams hand over; likewise */
    struct coalesced *coalesced; /* calls since ct_coalesce_begin(); NULL: it does not collect */
    void *stream;                /* ct_set_stream(): of device memory */
    _Atomic int
        in_streams; /* what its calls have found out for that (collectives/device/device_call.c) */
    struct device_group *device; /* of calls on device memory; NULL: there was none */
    struct pinned_pool pinned;   /* of messages of device memory */
    int lends_nothing;           /* CT_DEVICE=staged: not even in messages */
    struct reached
        *_Atomic reached; /* device_peer_access.c: devices that are proved to reach each other */
    const struct space *_Atomic borrows_from; /* messages were lent to it there; NULL: none was */
    struct record record;                     /* its line in the control page */
    _Atomic uint64_t running;                 /* number of the call that is being run; 0: none */
    _Atomic uint64_t begun;                   /* the last number that ever ran */
    _Atomic uint64_t later;      /* in this call the group broke elsewhere; 0: it did not */
    _Atomic int lost;            /* 1 + group rank of a member that died; 0: none */
    _Atomic uint64_t lost_after; /* the last call that it had finished */
    _Atomic int halted;          /* broken or lost: no message is waited for any more */
    uint16_t traced;             /* its index in the trace */
    _Atomic int broken;          /* a ct_status, set once; CT_OK: sound */
    pthread_mutex_t broken_lock; /* over breach; taken last, under the messages' lock too */
    struct breach breach;
    struct channel channel; /* of its messages; hears of breaches */
};

/* channel of the group's messages */
static inline uint64_t group_channel(const ct_group *group, int point_to_point)
{
    return group->id * 2 + (uint64_t)point_to_point;
}

/* "world, rank 2"; where its ranks are not the root's also whom that is there: other ranks, in any
 * sentence on a failure, are those of the root. */
const char *group_here(const ct_group *group, char *text, size_t size);

/* CT_ERR_INVALID: this process is a child of the one that made it. */
ct_status group_refuse_child(const ct_group *group);
/* The group itself, or the default one for NULL; fails without one, in a child of fork(), and for a
 * non-member. */
ct_status group_resolve(ct_group *group, ct_group **resolved);
ct_status group_resolve_member(ct_group *group, ct_group **resolved);

ct_status group_order(ct_group *group); /* fold_order.c: the fields about it */
ct_status group_create_root(struct mesh *mesh, ct_store *store, const char *name,
                            struct limit limit, const char *wishes,
                            const struct group_extension *extension, ct_group **group);
void group_destroy(ct_group *group); /* a root's groups too; its mesh too */

/* Breaks the group with the current sentence, unless it is broken already; gives status back.
 * The others can still finish the calls before the one that is being run, or before seq. */
ct_status group_break(ct_group *group, ct_status status);
ct_status group_break_at(ct_group *group, ct_status status, uint64_t seq);
void group_abort(ct_group *group);       /* the current sentence says why */
void group_break_later(ct_group *group); /* with the breach that waited for this call */
void group_heard(void *group, const struct breach *breach); /* from another rank, by message */
ct_status group_check(ct_group *group);                     /* CT_OK, or what broke it */

/* Of a call that begins now. */
static inline struct limit group_limit(ct_group *group)
{
    const int next = atomic_load_explicit(&group->next_timeout_ms, memory_order_relaxed);

    if (next > 0 && atomic_exchange(&group->next_timeout_ms, 0) > 0)
        return (struct limit){ next, "ct_set_next_timeout()" };
    return (struct limit){ group->timeout_ms, group->timeout_by };
}

/* A call begins: takes up the news, and fails at once in a group that has lost a member which
 * had not finished it.  seq 0: a message, which needs only its peer.  group_member_death.c */
ct_status group_begin(ct_group *group, uint64_t seq);
static inline void group_end(ct_group *group)
{
    atomic_store_explicit(&group->running, 0, memory_order_relaxed);
}
/* A call failed with status: perhaps only because the group was halted meanwhile.  Then it
 * breaks with that cause, which is given back. */
ct_status group_cause(ct_group *group, ct_status status);
ct_status group_quote(ct_group *group); /* what broke it, as the current sentence */
void group_look(ct_group *group);       /* has it broken on another rank of this host? */
/* mesh->on_loss of a root: what a death means to its groups. */
void group_lose(void *root, int peer);
void group_look_for_lost(ct_group *group); /* of whom was told before it was made */

#endif
