/* SPDX-License-Identifier: Apache-2.0 */
/* shm_group_create.c - making, breaking and leaving what shm_group.c makes rounds over.
 *
 * The first member reserves a piece of its arena and tells the others where.  The piece is taken
 * back when all have left. */
#include "runtime/group/shm_group_internal.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/messaging/protocol.h"

static size_t members_bytes(int count)
{
    return (sizeof(struct head) + (size_t)count * sizeof(struct member) + 4095) / 4096 * 4096;
}

/* Who writes a line that another processor still holds must get it back from there.  What goes
 * round more memory than a processor's own cache holds has been dropped by then: two ranks that
 * share the third-level cache only copy 256 KiB in 32 us round 256 KiB, in 9 round 2 MiB. */
static size_t slots_bytes(int count)
{
    return (count <= 2 ? 8 : count <= 4 ? 4 : 3) * FLAT_SLOT_BYTES + 2 * FLAT_SMALL_SLOT;
}

static size_t area_bytes(int count)
{
    return members_bytes(count) + (size_t)count * slots_bytes(count);
}

static struct member *members_in(void *area)
{
    return (struct member *)(void *)((char *)area + sizeof(struct head));
}

static int all_left(void *memory, size_t bytes)
{
    const struct head *head = memory;
    const struct member *members = members_in(memory);

    for (int i = 0; i < head->count && members_bytes(i + 1) <= bytes; i++)
        if (atomic_load(&members[i].state) != LEFT)
            return 0;
    return 1;
}

/* The maker's message: where the area starts in the node's memory; SIZE_MAX: nowhere. */
static ct_status agree_on_area(struct flat *f, uint64_t channel, int64_t deadline,
                               const _Atomic int *given_up)
{
    const struct signature signature = { .op = -1, .root = -1 }; /* no call: seq 0 */
    uint64_t offset = SIZE_MAX;
    struct request request;
    ct_status status = CT_OK;

    if (f->rank > 0) {
        request_recv(f->mesh, &request, channel, f->ranks[0], 0, &offset, sizeof offset,
                     &signature);
        status = request_wait(f->mesh, &request, deadline, given_up);
        f->offset = offset;
        return status;
    }
    f->offset = offset = node_area_alloc(&f->mesh->node, area_bytes(f->size));
    if (offset != SIZE_MAX) {
        memset(f->mesh->node.base + offset, 0, members_bytes(f->size));
        ((struct head *)(void *)(f->mesh->node.base + offset))->count = f->size;
    }
    for (int i = 1; i < f->size && status == CT_OK; i++) {
        request_send(f->mesh, &request, channel, f->ranks[i], 0, &offset, sizeof offset,
                     &signature);
        status = request_wait(f->mesh, &request, deadline, given_up);
        if (status == CT_ERR_PEER)
            status = CT_OK; /* it died: the first call will say so, and the others wait for us */
    }
    return status;
}

static void flat_free(struct flat *f)
{
    free(f->locals);
    free(f->ranks);
    free(f->reached);
    free(f);
}

ct_status flat_create(struct mesh *mesh, const int *members, int count, int rank, uint64_t channel,
                      int64_t deadline, const _Atomic int *given_up, struct flat **flat)
{
    struct flat *f;
    ct_status status;

    if (mesh->node.size > NODE_MOST) /* members_here can't say who they are */
        return CT_OK;
    f = calloc(1, sizeof *f);
    if (!f || !(f->locals = calloc((size_t)count, sizeof *f->locals))
        || !(f->ranks = calloc((size_t)count, sizeof *f->ranks))
        || !(f->reached = calloc((size_t)count, sizeof *f->reached))) {
        if (f)
            flat_free(f);
        return ct_fail(CT_ERR_NOMEM, "no memory for a group of %d ranks", count);
    }
    f->mesh = mesh;
    f->rank = rank;
    f->size = count;
    f->round = f->all_in = fault_first_seq(mesh->faults) - 1;
    for (int i = 0; i < count; i++) {
        f->ranks[i] = members[i];
        f->locals[i] = mesh->peers[members[i]].local;
        node_set_add(f->members_here, f->locals[i]);
    }
    status = agree_on_area(f, channel, deadline, given_up);
    if (status != CT_OK || f->offset == SIZE_MAX) {
        flat_free(f);
        return status;
    }
    f->head = (struct head *)(void *)(mesh->node.base + f->offset);
    f->members = members_in(f->head);
    f->slots = mesh->node.base + f->offset + members_bytes(count);
    f->area = slots_bytes(count);
    *flat = f;
    return CT_OK;
}

static void ring_all(const struct flat *f)
{
    for (int i = 0; i < f->size; i++)
        node_ring_bell(&f->mesh->node, f->locals[i]);
}

/* Of the members that know of a breach the one with the earliest call; -1: it is sound. */
static int earliest(const struct flat *f, uint64_t *seq)
{
    int member = -1;

    for (int i = 0; i < f->size && atomic_load_explicit(&f->head->broken, memory_order_relaxed);
         i++) {
        const uint64_t breached =
            atomic_load_explicit(&f->members[i].breached, memory_order_acquire);

        if (breached && (member < 0 || breached - 1 < *seq)) {
            member = i;
            *seq = breached - 1;
        }
    }
    return member;
}

void flat_break(struct flat *f, const struct breach *breach)
{
    struct member *own = &f->members[f->rank];
    uint64_t seq;

    if (atomic_load(&own->breached) || (earliest(f, &seq) >= 0 && seq <= breach->seq))
        return;
    own->breach = *breach;
    atomic_store(&own->breached, breach->seq + 1);
    atomic_store(&f->head->broken, 1);
    ring_all(f);
}

int flat_breach(const struct flat *f, struct breach *breach)
{
    uint64_t seq;
    const int member = earliest(f, &seq);

    if (member < 0)
        return 0;
    *breach = f->members[member].breach;
    return 1;
}

/* A rank that failed in a later call has done its part of this one. */
int flat_is_broken(const struct flat *f)
{
    uint64_t seq;

    return atomic_load_explicit(f->broken, memory_order_relaxed)
           || (earliest(f, &seq) >= 0 && seq <= f->signature.seq);
}

void flat_destroy(struct flat *f)
{
    if (!f)
        return;
    flat_withdraw(f);
    atomic_store(&f->members[f->rank].state, LEFT);
    ring_all(f);
    if (f->rank == 0)
        node_area_retire(&f->mesh->node, f->offset, all_left);
    flat_free(f);
}
