/* SPDX-License-Identifier: Apache-2.0 */
/* shm_group.c - allocates and frees the memory that the ranks of a group on one host share.
 *
 * A group's block holds the head, the members, the tree and the slots.  It lies in the arena of the
 * group's first member.  The block of the mesh's first group is the first one in that arena.  For
 * any other group the first member allocates the block and sends its offset to the other members.
 * The block is free again when all members have left. */
#include "runtime/group/shm/shm_group.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/fault/fault_injection.h"
#include "runtime/group/shm/direct.h"
#include "runtime/group/shm/shm_group_internal.h"
#include "runtime/messaging/messages.h"

/* ---- The block -------------------------------------------------------------------- */

static size_t shm_group_tree_offset(int count)
{
    return sizeof(struct shm_head) + (size_t)count * sizeof(struct shm_member);
}

static size_t shm_group_slots_offset(int count)
{
    return (shm_group_tree_offset(count) + shm_tree_bytes(count) + 4095) / 4096 * 4096;
}

static size_t shm_group_block_bytes(int count)
{
    return shm_group_slots_offset(count) + (size_t)count * shm_slots_bytes(count);
}

static int shm_group_all_left(void *memory, size_t bytes)
{
    const struct shm_head *head = memory;

    (void)bytes;
    return (int)atomic_load(&head->left) == head->count;
}

/* Allocates the block; only the first member calls this.  The block of the mesh's first
 * group is new memory full of zeros.  It must not be cleared here, since other members may
 * already use it. */
static void shm_group_alloc_block(struct shm_group *f, int is_first)
{
    struct node *node = &f->mesh->node;
    struct shm_head *head;

    f->offset = node_arena_alloc(node, shm_group_block_bytes(f->size));
    if (f->offset == SIZE_MAX)
        return;
    head = (void *)(node->base + f->offset);
    if (!is_first)
        memset(head, 0, shm_group_slots_offset(f->size));
    head->count = f->size;
}

/* Finds the block of the mesh's first group without a message: that group has all ranks of the
 * host, so its block is the first one in the arena of the host's first rank. */
static void shm_group_take_first_block(struct shm_group *f)
{
    if (f->rank == 0)
        shm_group_alloc_block(f, 1);
    else if (shm_group_block_bytes(f->size) <= ARENA_BYTES)
        f->offset = node_first_block(&f->mesh->node);
}

/* Brings the block's offset to all members: the first member allocates the block and sends the
 * offset to the others, in messages through the host segment. */
static ct_status shm_group_agree_on_block(struct shm_group *f, uint64_t channel, int64_t deadline,
                                          const _Atomic int *given_up)
{
    const struct signature signature = { .op = -1, .root = -1 }; /* belongs to no call: seq 0 */
    struct request request;
    ct_status status = CT_OK;

    if (f->rank > 0) {
        request_recv(f->mesh, &request, channel, f->peers[0].rank, 0, &f->offset, sizeof f->offset,
                     &signature);
        return request_wait(f->mesh, &request, deadline, given_up);
    }
    shm_group_alloc_block(f, 0);
    for (int i = 1; i < f->size && status == CT_OK; i++) {
        request_send(f->mesh, &request, channel, f->peers[i].rank, 0, &f->offset, sizeof f->offset,
                     &signature);
        status = request_wait(f->mesh, &request, deadline, given_up);
        if (status == CT_ERR_PEER)
            /* peer i died; the first call will report that, and the others still wait for us */
            status = CT_OK;
    }
    return status;
}

/* ---- Creating and destroying ---------------------------------------------------- */

static void shm_group_free(struct shm_group *f)
{
    free(f->peers);
    free(f);
}

/* Returns NULL if memory runs out. */
static struct shm_group *shm_group_alloc(struct mesh *mesh, const int *ranks, int size)
{
    struct shm_group *f = calloc(1, sizeof *f);

    if (!f)
        return NULL;
    f->mesh = mesh;
    f->offset = SIZE_MAX;
    f->gate = NO_RANK;
    f->round = f->all_in = f->before = fault_first_seq(mesh->faults) - 1;
    f->peers = calloc((size_t)size, sizeof *f->peers);
    if (!f->peers) {
        free(f);
        return NULL;
    }
    for (int i = 0; i < size; i++) {
        const int local = mesh->peers[ranks[i]].local;

        if (ranks[i] == mesh->rank)
            f->rank = f->size;
        if (local < 0)
            continue;
        node_set_add(f->members_here, local);
        f->peers[f->size++] = (struct shm_peer){ .rank = ranks[i], .local = local };
    }
    f->has_network = f->size < size;
    return f;
}

static void shm_group_open_block(struct shm_group *f)
{
    unsigned char *const block = f->mesh->node.base + f->offset;

    f->head = (void *)block;
    f->members = (void *)(f->head + 1);
    if (shm_tree_bytes(f->size) > 0)
        f->tree = (void *)(block + shm_group_tree_offset(f->size));
    shm_slots_open(f, block + shm_group_slots_offset(f->size));
}

ct_status shm_group_create(struct mesh *mesh, const int *ranks, int size, int is_first,
                           uint64_t channel, int64_t deadline, const _Atomic int *given_up,
                           struct shm_group **shm)
{
    struct shm_group *f;
    ct_status status = CT_OK;

    if (!mesh->node.base || mesh->node.size > NODE_MOST) /* a set of ranks has room for NODE_MOST */
        return CT_OK;
    f = shm_group_alloc(mesh, ranks, size);
    if (!f)
        return ct_fail(CT_ERR_NOMEM, "no memory for a group of %d ranks", size);
    /* In a file that is not a memfd, there may be no room for the block. */
    if (f->size > 1 && is_first && !mesh->node.is_file)
        shm_group_take_first_block(f);
    else if (f->size > 1)
        status = shm_group_agree_on_block(f, channel, deadline, given_up);
    if (status != CT_OK || f->offset == SIZE_MAX) {
        shm_group_free(f);
        return status;
    }
    shm_group_open_block(f);
    *shm = f;
    return CT_OK;
}

void shm_group_begin_call(struct shm_group *f, const struct signature *signature, int64_t deadline,
                          const _Atomic int *given_up)
{
    f->signature = *signature;
    f->deadline = deadline;
    f->given_up = given_up;
}

void shm_group_destroy(struct shm_group *f)
{
    if (!f)
        return;
    shm_group_withdraw(f);
    atomic_store(&f->members[f->rank].state, LEFT);
    atomic_fetch_add(&f->head->left, 1); /* from here on another group may get the block */
    bell_fence();
    shm_ring_members(f);
    if (f->rank == 0)
        node_arena_retire(&f->mesh->node, f->offset, shm_group_all_left);
    shm_group_free(f);
}
