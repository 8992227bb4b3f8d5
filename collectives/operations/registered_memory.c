/* SPDX-License-Identifier: Apache-2.0 */
/* registered_memory.c - ct_mem_alloc() and ct_mem_free(), for buffers that all ranks of a host map.
 *
 * The first member on each host reserves a piece of the host's shared file and publishes the offset
 * (runtime/shm/shared_region.h).  Then all members map the piece and tell each other whether they
 * could.  Afterwards all members have the memory, or no member has.  A rank that is alone on its
 * host gets private memory. */
#include "collectives/operations/internal_collectives.h"
#include "runtime/shm/shared_region.h"

#include <stdio.h>
#include <stdlib.h>

#include "collectives/core/call.h"

/* The values that each member publishes before it maps the memory. */
struct claim {
    uint64_t bytes;
    /* Offset in the shared file, from the first member on each host.  0 from other members, or if
     * nothing is shared. */
    uint64_t offset;
};

enum { CLAIM_WORDS = sizeof(struct claim) / sizeof(uint64_t) };

/* Writes the local ranks of the members on this host to locals, and returns how many there are.
 * *own is this rank's index in locals.  *first is the group rank of the first member. */
static int members_here(const ct_group *g, int *locals, int *own, int *first)
{
    int count = 0;

    for (int i = 0; i < g->size; i++) {
        const int local = g->mesh->peers[g->ranks[i]].local;

        if (i != g->rank && (local < 0 || !g->mesh->node.base))
            continue;
        if (count == 0)
            *first = i;
        if (i == g->rank)
            *own = count;
        locals[count++] = i == g->rank ? g->mesh->node.rank : local;
    }
    return count;
}

static ct_status all_want_the_same(const ct_group *g, const struct claim *claims)
{
    const struct claim *const mine = &claims[g->rank];

    for (int i = 0; i < g->size; i++)
        if (claims[i].bytes != mine->bytes)
            return ct_fail(CT_ERR_MISMATCH,
                           "mem_alloc: rank %d asks for %llu bytes, rank %d for %llu", g->ranks[i],
                           (unsigned long long)claims[i].bytes, g->ranks[g->rank],
                           (unsigned long long)mine->bytes);
    return CT_OK;
}

/* Returns CT_OK if all members could map the memory.  Otherwise fails with this rank's own reason,
 * or names the first member that could not. */
static ct_status all_could(ct_group *g, ct_status mine, uint64_t *words, const void *caller)
{
    const uint64_t word = (uint64_t) - (int64_t)mine;
    char why[256];
    ct_status status;

    snprintf(why, sizeof why, "%s", mine == CT_OK ? "" : ct_last_error());
    status = agree_gather(g, OPERATION_MEM_ALLOC, &word, words, 1, CT_U64, caller);
    if (status != CT_OK)
        return status;
    if (mine != CT_OK)
        return ct_fail(mine, "mem_alloc: %s", why);
    for (int i = 0; i < g->size; i++)
        if (words[i] != 0)
            return ct_fail((ct_status) - (int64_t)words[i],
                           "mem_alloc: rank %d can't have the memory: %s", g->ranks[i],
                           ct_strerror((ct_status) - (int64_t)words[i]));
    return CT_OK;
}

static ct_status memory_alloc(ct_group *g, size_t bytes, int *locals, struct claim *claims,
                              void **ptr, const void *caller)
{
    struct node *node = &g->mesh->node;
    struct region_plan plan = { .locals = locals, .group = g->identity.id };
    int first = g->rank;
    ct_status status, mapped;

    plan.parts = members_here(g, locals, &plan.own, &first);
    plan.bytes = region_part(bytes);
    claims[g->rank] = (struct claim){ .bytes = bytes };
    if (first == g->rank && plan.parts > 1)
        claims[g->rank].offset = region_reserve(node, plan.bytes * (size_t)plan.parts);
    status =
        agree_gather(g, OPERATION_MEM_ALLOC, &claims[g->rank], claims, CLAIM_WORDS, CT_U64, caller);
    if (status == CT_OK)
        status = all_want_the_same(g, claims);
    if (status != CT_OK)
        return status;
    plan.offset = claims[first].offset;
    mapped = region_map(node, &plan, ptr);
    status = all_could(g, mapped, (uint64_t *)claims, caller);
    if (status != CT_OK && mapped == CT_OK) {
        region_unmap(node, *ptr);
        *ptr = NULL;
    }
    return status;
}

ct_status ct_mem_alloc(ct_group *group, size_t bytes, void **ptr)
{
    const void *caller = __builtin_return_address(0);
    struct claim *claims;
    int *locals;
    ct_status status;

    if (!ptr)
        return ct_fail(CT_ERR_INVALID, "mem_alloc: the pointer for the memory is NULL");
    *ptr = NULL;
    status = group_resolve_member(group, &group);
    if (status != CT_OK)
        return ct_fail_in(status, "mem_alloc: ");
    if (region_part(bytes) == 0)
        return ct_fail(CT_ERR_INVALID, "mem_alloc: %zu bytes are more than memory can hold", bytes);
    claims = calloc((size_t)group->size, sizeof *claims);
    locals = calloc((size_t)group->size, sizeof *locals);
    status = claims && locals
                 ? memory_alloc(group, bytes, locals, claims, ptr, caller)
                 : ct_fail(CT_ERR_NOMEM, "mem_alloc: no memory to gather from the ranks");
    free(claims);
    free(locals);
    return status;
}

/* Frees the memory only when all ranks are in this call, since other ranks may still read the
 * memory in the last call.  In a broken group no rank waits, and the memory is freed at once.  A
 * refused call (between ct_coalesce_begin() and ct_coalesce_end()) frees nothing. */
ct_status ct_mem_free(ct_group *group, void *ptr)
{
    const void *caller = __builtin_return_address(0);
    uint64_t of, word, *words;
    ct_status status = group_resolve_member(group, &group);

    if (status != CT_OK)
        return ct_fail_in(status, "mem_free: ");
    if (!ptr)
        return CT_OK;
    if (!region_of(&group->mesh->node, ptr, &of, &word) || of != group->identity.id)
        return ct_fail(CT_ERR_INVALID, "mem_free: %p is not memory of ct_mem_alloc() of group %s",
                       ptr, group->name);
    words = calloc((size_t)group->size, sizeof *words);
    if (!words)
        return ct_fail(CT_ERR_NOMEM, "mem_free: no memory to gather from the ranks");
    status = agree_gather(group, OPERATION_MEM_FREE, &word, words, 1, CT_U64, caller);
    if (status != CT_ERR_INVALID)
        region_unmap(&group->mesh->node, ptr);
    free(words);
    return status;
}
