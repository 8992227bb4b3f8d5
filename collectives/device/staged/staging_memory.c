/* SPDX-License-Identifier: Apache-2.0 */
/* staging_memory.c - allocates host memory to and from which device memory is copied.
 *
 * The memory is pinned, or else the driver would copy the bytes a second time.  If all ranks are on
 * one host, the memory is a registered region, like memory of ct_mem_alloc().  Then the algorithms
 * for host memory read and write the region in place, without slots.  A rank pins only its own
 * part, since its process, but not its device, accesses the other ranks' parts.
 *
 * The ranks agree on a region as in ct_mem_alloc(), but within the call.  The first rank publishes
 * the offset, all ranks map the region, and all ranks exchange whether this succeeded.  If it
 * failed on a rank, each rank allocates private memory. */
#include "collectives/device/staged/staging_memory.h"

#include <stdlib.h>

#include "collectives/device/group/device_group.h"
#include "runtime/shm/shared_region.h"
#include "runtime/util/log.h"

/* Sets plan->offset to the offset that rank 0 reserved, or to 0 if there is no room and nothing is
 * shared. */
static ct_status agree_on_offset(struct call *c, struct region_plan *plan, uint64_t *words)
{
    ct_group *g = c->group;
    uint64_t offset =
        g->rank == 0 ? region_reserve(&g->mesh->node, plan->bytes * (size_t)plan->parts) : 0;
    const ct_status status = device_gather(c, &offset, sizeof offset, words);

    plan->offset = words[0];
    return status;
}

/* Maps the region on all ranks or on no rank.  If a rank can't map it, sets *data to NULL, and this
 * is not a failure. */
static ct_status map_for_all(struct call *c, const struct region_plan *plan, uint64_t *words,
                             char **data)
{
    struct node *node = &c->group->mesh->node;
    void *own = NULL;
    const uint64_t could = region_map(node, plan, &own) == CT_OK;
    const ct_status status = device_gather(c, &could, sizeof could, words);
    int all = status == CT_OK;

    for (int i = 0; i < c->group->size && status == CT_OK; i++)
        all &= words[i] == 1;
    if (could && !all)
        region_unmap(node, own);
    *data = all ? own : NULL;
    return status;
}

static ct_status map_shared(struct call *c, size_t bytes, char **data)
{
    const ct_group *g = c->group;
    struct region_plan plan = { .bytes = bytes, .parts = g->size, .own = g->rank, .our_own = 1 };
    uint64_t *words = malloc((size_t)g->size * sizeof *words);
    int *locals = malloc((size_t)g->size * sizeof *locals);
    ct_status status;

    for (int i = 0; i < g->size && locals; i++)
        locals[i] = i == g->rank ? g->mesh->node.rank : g->mesh->peers[g->ranks[i]].local;
    plan.locals = locals;
    status = words && locals ? agree_on_offset(c, &plan, words)
                             : ct_fail(CT_ERR_NOMEM, "no memory to gather from the ranks");
    if (status == CT_OK && plan.offset)
        status = map_for_all(c, &plan, words, data);
    free(words);
    free(locals);
    return status;
}

static ct_status map_own(struct call *c, size_t bytes, char **data)
{
    const struct region_plan plan = { .bytes = bytes, .parts = 1 };
    void *own;
    const ct_status status = region_map(&c->group->mesh->node, &plan, &own);

    if (status == CT_OK)
        *data = own;
    return status;
}

ct_status host_memory_make(struct call *c, struct host_memory *memory, size_t bytes, int shared)
{
    const size_t part = region_part(bytes);
    char *data = NULL;
    ct_status status = CT_OK;
    int is_shared;

    if (part == 0)
        return ct_fail(CT_ERR_NOMEM, "%zu bytes are more than host memory can hold", bytes);
    if (shared && c->group->shm)
        status = map_shared(c, part, &data);
    is_shared = data != NULL;
    if (status == CT_OK && !data)
        status = map_own(c, part, &data);
    if (status != CT_OK)
        return ct_fail_in(status, "host memory for device memory: ");
    *memory = (struct host_memory){ .data = data, .bytes = part, .shared = is_shared };
    return CT_OK;
}

void host_memory_pin(struct call *c, struct host_memory *memory, int *cant)
{
    ct_status status;

    if (*cant || memory->pinned.space)
        return;
    status = c->place.space->register_host(c->place.device, memory->data, memory->bytes);
    if (status == CT_OK)
        memory->pinned = c->place;
    if (status == CT_OK || status == CT_ERR_UNSUPPORTED)
        return;
    *cant = 1;
    log_line(LOG_INFO, "group %s, rank %d: host memory for device memory is not pinned: %s",
             c->group->name, c->group->rank, ct_last_error());
}

void host_memory_leave(ct_group *group, const struct host_memory *memory)
{
    region_leave(&group->mesh->node, memory->data);
}

ct_status host_memory_drop(ct_group *group, struct host_memory *memory, int may_wait)
{
    const struct place *place = &memory->pinned;
    ct_status status = CT_OK;
    void *before;

    if (place->space && place->space->enter(&before) == CT_OK) {
        status = place->space->unregister_host(place->device, memory->data, may_wait);
        place->space->leave(before);
    }
    if (status == CT_ERR_UNSUPPORTED)
        return status;
    if (memory->data)
        region_unmap(&group->mesh->node, memory->data);
    *memory = (struct host_memory){ 0 };
    return CT_OK;
}
