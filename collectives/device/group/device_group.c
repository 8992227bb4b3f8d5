/* SPDX-License-Identifier: Apache-2.0 */
/* device_group.c - makes the device table, with which the ranks of a group know each other's
 * devices.
 *
 * In the group's first call on device memory each rank gathers all ranks' devices and all users'
 * choices, so that all ranks decide the same.  These bytes are sent within the call: in a round of
 * the shared-memory exchange if the group has one, otherwise by messages. */
#include "collectives/device/group/device_group.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/core/sendrecv.h"
#include "runtime/group/shm/rounds.h"
#include "runtime/group/shm/slots.h"

struct device_group *device_group_of(ct_group *group)
{
    if (!group->device && !(group->device = calloc(1, sizeof *group->device)))
        ct_fail(CT_ERR_NOMEM, "no memory for calls on device memory");
    return group->device;
}

void *device_path_own(ct_group *group, enum path_number path, size_t bytes)
{
    struct path_state *const state = &group->device->path[path];
    void *own = state->own;

    if (!own) {
        own = calloc(1, bytes);
        state->own = own;
    }
    if (!own)
        ct_fail(CT_ERR_NOMEM, "no memory for calls on device memory");
    return own;
}

enum path_number device_override(const struct call *c)
{
    return c->override != PATH_NONE ? c->override : c->group->device->table.override;
}

enum path_number device_first_path(const ct_group *group, enum path_number override)
{
    return override != PATH_NONE                           ? override
           : group->device->table.apart && group->size > 1 ? PATH_NCCL
                                                           : PATH_FUSED;
}

/* ---- Gather --------------------------------------------------------------------- */

/* Gathers in steps.  In step k each rank sends all its bytes to the rank 2^k to its left (the
 * algorithm bruck of all_gather.c).  So the result begins with the rank's own bytes, and is rotated
 * at the end. */
static ct_status device_gather_by_messages(struct call *c, const void *mine, size_t bytes,
                                           char *all)
{
    const int p = c->group->size, rank = c->group->rank;
    char *rotated = malloc((size_t)p * bytes);
    ct_status status = CT_OK;

    if (!rotated)
        return ct_fail(CT_ERR_NOMEM, "no memory to gather from %d ranks", p);
    memcpy(rotated, mine, bytes);
    for (int have = 1; have < p && status == CT_OK; have *= 2) {
        const size_t more = (size_t)(have < p - have ? have : p - have) * bytes;

        status = exchange(c, (rank - have + p) % p, span_of(rotated, more), (rank + have) % p,
                          span_of(rotated + (size_t)have * bytes, more));
    }
    for (int i = 0; i < p && status == CT_OK; i++)
        memcpy(all + (size_t)((rank + i) % p) * bytes, rotated + (size_t)i * bytes, bytes);
    free(rotated);
    return status;
}

static ct_status gather_by_round(struct call *c, const void *mine, size_t bytes, char *all)
{
    struct shm_group *f = c->group->shm;
    ct_status status = shm_group_next_slot(f, bytes);

    if (status == CT_OK) {
        shm_group_write(f, 0, mine, bytes);
        status = shm_group_publish(f);
    }
    if (status == CT_OK)
        status = shm_group_wait_all(f);
    for (int i = 0; i < c->group->size && status == CT_OK; i++)
        memcpy(all + (size_t)i * bytes, shm_group_slot(f, i), bytes);
    return status;
}

ct_status device_gather(struct call *c, const void *mine, size_t bytes, void *all)
{
    return c->group->shm ? gather_by_round(c, mine, bytes, all)
                         : device_gather_by_messages(c, mine, bytes, all);
}

/* ---- Leaders ------------------------------------------------------------------- */

static int find_leader(const struct leaders *l, const unsigned char *id)
{
    int i = 0;

    while (i < l->count && memcmp(l->id[i], id, sizeof l->id[i]) != 0)
        i++;
    return i;
}

/* Sets the leaders, from the ids of all ranks' devices. id(i, arg) returns the id of rank i's
 * device. */
static ct_status leaders_find(struct leaders *l, int rank, int size,
                              const unsigned char *(*id)(int rank, const void *arg),
                              const void *arg)
{
    *l = (struct leaders){ .ranks = size,
                           .rank = calloc((size_t)size, sizeof *l->rank),
                           .of = calloc((size_t)size, sizeof *l->of),
                           .id = calloc((size_t)size, sizeof *l->id) };
    if (!l->rank || !l->of || !l->id) {
        leaders_free(l);
        return ct_fail(CT_ERR_NOMEM, "no memory to note the devices of %d ranks", size);
    }
    for (int i = 0; i < size; i++) {
        const int which = find_leader(l, id(i, arg));

        if (which == l->count) {
            memcpy(l->id[which], id(i, arg), sizeof l->id[which]);
            l->rank[l->count++] = i;
        }
        l->of[i] = which;
    }
    l->mine = l->rank[l->of[rank]] == rank ? l->of[rank] : -1;
    return CT_OK;
}

void leaders_free(struct leaders *l)
{
    free(l->rank);
    free(l->of);
    free(l->id);
    *l = (struct leaders){ .mine = -1 };
}

/* ---- The table ------------------------------------------------------------------- */

/* The bytes that a rank publishes about itself. */
struct device_info {
    unsigned char id[16];
    int32_t has_device;
    int32_t with_nccl;
    int32_t override;
    int32_t by_streams;
};

static struct device_info own_info(const struct call *c)
{
    const struct place *place = &c->place;
    struct device_info info;

    memset(&info, 0, sizeof info); /* sets the padding bytes too, since the struct is sent */
    info.override = c->group->algorithms.choices->device;
    info.by_streams = c->group->algorithms.choices->by_streams;
    if (place->device) {
        place->space->id(place->device, info.id);
        info.has_device = 1;
        info.with_nccl = place->space->comm_library != NULL;
    }
    return info;
}

/* Returns the path that CT_DEVICE sets for the group.  If a rank has "staged", the path is staged.
 * Another path is used only if all ranks have it, else the result is PATH_NONE. */
static enum path_number override_of_all(const struct device_info *infos, int size)
{
    int override = infos[0].override;

    for (int i = 1; i < size && override != PATH_STAGED; i++)
        if (infos[i].override != override)
            override = infos[i].override == PATH_STAGED ? PATH_STAGED : PATH_NONE;
    return (enum path_number) override;
}

static const unsigned char *id_of(int rank, const void *infos)
{
    return ((const struct device_info *)infos)[rank].id;
}

static ct_status fill_table(const struct device_info *infos, int rank, int size,
                            struct device_table *t)
{
    const ct_status status = leaders_find(&t->leaders, rank, size, id_of, infos);

    if (status != CT_OK)
        return status;
    t->apart = t->leaders.count == size;
    t->with_nccl = t->by_streams = 1;
    for (int i = 0; i < size; i++) {
        t->with_nccl &= infos[i].with_nccl;
        t->by_streams &= infos[i].by_streams;
    }
    t->override = override_of_all(infos, size);
    t->known = 1;
    return CT_OK;
}

ct_status device_table_make(struct call *c, struct device_table *table)
{
    const struct device_info mine = own_info(c);
    struct device_info *infos = malloc((size_t)c->group->size * sizeof *infos);
    ct_status status;

    if (!infos)
        return ct_fail(CT_ERR_NOMEM, "no memory for the devices of %d ranks", c->group->size);
    status = device_gather(c, &mine, sizeof mine, infos);
    for (int i = 0; i < c->group->size && status == CT_OK; i++)
        if (!infos[i].has_device)
            status = ct_fail(CT_ERR_UNSUPPORTED, "rank %d has no GPU that is current",
                             c->group->ranks[i]);
    if (status == CT_OK)
        status = fill_table(infos, c->group->rank, c->group->size, table);
    if (status == CT_OK)
        table->place = c->place;
    free(infos);
    return status;
}
