/* SPDX-License-Identifier: Apache-2.0 */
/* group_failure.c - a group breaks, here or elsewhere, once and for one cause.
 *
 * What broke it on this rank goes to the others twice: into the memory that a group on one host
 * shares, and over its wires (group_channel.h).  A breach has the number of its call: a rank
 * that is still in an earlier one finishes that first. */
#include "runtime/group/group.h"
#include "runtime/messaging/messaging_internal.h"

/* Under broken_lock.  A breach in a call that this rank has not begun waits until it does.  A
 * mismatch that a call finds itself is what it returns, and all later ones: also when somebody,
 * who found it first, has ended meanwhile. */
static int set_now_or_later(ct_group *group, const struct breach *breach)
{
    const uint64_t later = atomic_load(&group->later);
    const int found_here = breach->status == CT_ERR_MISMATCH && breach->rank == group->mesh->rank;

    if (atomic_load(&group->broken) != CT_OK && !found_here)
        return 0;
    if (breach->rank != group->mesh->rank && breach->seq > atomic_load(&group->begun)) {
        if (later == 0 || breach->seq < later)
            group->breach = *breach;
        atomic_store(&group->later, group->breach.seq);
        if (breach->seq > atomic_load(&group->begun)) { /* it did not begin meanwhile */
            atomic_store(&group->halted, 1);
            return later == 0;
        }
    } else {
        group->breach = *breach;
    }
    atomic_store(&group->broken, (int)breach_status(group->mesh, &group->breach));
    atomic_store(&group->halted, 1);
    return 1;
}

/* 1: it was sound until now.  That can be so twice: of a breach in a later call, and then of an
 * earlier one of this rank's.  The flat group is told under the lock, too, since it has one
 * sentence of this rank, which the others read without one. */
static int set_breach(ct_group *group, const struct breach *breach)
{
    int first;

    pthread_mutex_lock(&group->broken_lock);
    first = set_now_or_later(group, breach);
    if (first && group->flat)
        flat_break(group->flat, breach);
    pthread_mutex_unlock(&group->broken_lock);
    if (first)
        bell_ring(group->mesh->waiter.bell, group->mesh->waiter.event_fd);
    return first;
}

/* A call begins that comes after what broke the group elsewhere. */
void group_break_later(ct_group *group)
{
    pthread_mutex_lock(&group->broken_lock);
    if (atomic_load(&group->broken) == CT_OK)
        atomic_store(&group->broken, (int)breach_status(group->mesh, &group->breach));
    pthread_mutex_unlock(&group->broken_lock);
}

void group_heard(void *owner, const struct breach *breach)
{
    set_breach(owner, breach);
}

/* From another rank, by the memory that a group on one host shares.  Every call asks. */
void group_look(ct_group *group)
{
    struct breach breach;

    if (group->flat && atomic_load(&group->broken) == CT_OK && flat_breach(group->flat, &breach)
        && set_breach(group, &breach))
        channel_break(group->mesh, &group->channel, &breach);
}

ct_status group_break_at(ct_group *group, ct_status status, uint64_t seq)
{
    const struct breach breach = breach_here(group->mesh, status, seq);

    if (set_breach(group, &breach))
        channel_break(group->mesh, &group->channel, &breach);
    return status;
}

ct_status group_break(ct_group *group, ct_status status)
{
    const uint64_t running = atomic_load(&group->running);

    return group_break_at(group, status, running ? running : group->seq);
}

ct_status group_quote(ct_group *group)
{
    struct breach breach;

    pthread_mutex_lock(&group->broken_lock);
    breach = group->breach;
    pthread_mutex_unlock(&group->broken_lock);
    return breach_fail(group->mesh, &breach);
}

ct_status group_check(ct_group *group)
{
    group_look(group);
    if (atomic_load(&group->broken) == CT_OK)
        return CT_OK;
    messages_look(group->mesh); /* others may ask what is the matter */
    return ct_fail_in(group_quote(group), "group %s is broken since: ", group->name);
}

/* What this rank has finished the others can finish too. */
void group_abort(ct_group *group)
{
    const uint64_t running = atomic_load(&group->running);

    group_break_at(group, CT_ERR_ABORTED, running ? running : atomic_load(&group->begun) + 1);
}

ct_status ct_abort(ct_group *group)
{
    ct_group *g;
    const ct_status status = group_resolve_member(group, &g);

    if (status != CT_OK)
        return status;
    ct_fail(CT_ERR_ABORTED, "ct_abort() was called on group %s", g->name);
    group_abort(g);
    return CT_OK;
}
