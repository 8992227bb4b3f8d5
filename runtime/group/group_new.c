/* SPDX-License-Identifier: Apache-2.0 */
/* group_new.c - determines the members of a new group, for ct_new_group(), ct_split_group() and
 * ct_new_subgroups().
 *
 * All ranks of the parent call these functions, and first gather the requests of all ranks over the
 * parent.  So they find out before they create the group if two ranks passed different lists.  With
 * the option local_sync, only the members call ct_new_group_with(), and the other ranks do not
 * learn of the group. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/group/group_extension.h"

static uint64_t id_mix(uint64_t hash, uint64_t value)
{
    hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
    hash *= 0xff51afd7ed558ccdu;
    return hash ^ (hash >> 32);
}

static uint64_t hash_ranks(uint64_t hash, const int *ranks, int count)
{
    for (int i = 0; i < count; i++)
        hash = id_mix(hash, (uint64_t)ranks[i]);
    return id_mix(hash, (uint64_t)count);
}

static ct_status check_list(const ct_group *parent, const int *ranks, int count)
{
    if (count < 1)
        return ct_fail(CT_ERR_INVALID, "ct_new_group: a group needs at least one rank");
    if (!ranks)
        return ct_fail(CT_ERR_INVALID, "ct_new_group: the list of the %d ranks is NULL", count);
    if (count > parent->size)
        return ct_fail(CT_ERR_INVALID, "ct_new_group: %d ranks are listed, but the group has %d",
                       count, parent->size);
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= parent->size)
            return ct_fail(CT_ERR_INVALID,
                           "ct_new_group: rank %d is not in 0..%d, the ranks of group %s", ranks[i],
                           parent->size - 1, parent->name);
        for (int j = 0; j < i; j++)
            if (ranks[j] == ranks[i])
                return ct_fail(CT_ERR_INVALID, "ct_new_group: rank %d is listed twice", ranks[i]);
    }
    return CT_OK;
}

ct_status group_options_check(const ct_group_options *options)
{
    if (options->size != sizeof *options)
        return ct_fail(CT_ERR_INVALID,
                       "ct_group_options.size is %zu; start from "
                       "CT_GROUP_OPTIONS_INIT",
                       options->size);
    if (options->timeout_ms != -1 && options->timeout_ms <= 0)
        return ct_fail(CT_ERR_INVALID, "ct_group_options.timeout_ms is %d; it must be positive",
                       options->timeout_ms);
    return CT_OK;
}

/* Returns CT_ERR_UNSUPPORTED if `backend` differs from the parent's backend.  NULL means the
 * parent's. */
static ct_status check_backend(const ct_group *parent, const char *backend)
{
    if (backend && !strcmp(backend, "gloo"))
        backend = "cpu";
    return !backend || !strcmp(backend, parent->backend)
               ? CT_OK
               : ct_fail(CT_ERR_UNSUPPORTED,
                         "ct_new_group: backend \"%s\" is not that of the parent; group %s has "
                         "backend \"%s\", and all groups made from it must have the same",
                         backend, parent->name, parent->backend);
}

/* Returns CT_ERR_MISMATCH if the ranks of the parent passed different lists.  `id` is a hash of
 * this rank's list.  All ranks of the parent call this function. */
static ct_status same_list(ct_group *parent, uint64_t id, const void *caller)
{
    uint64_t *ids = calloc((size_t)parent->size, sizeof *ids);
    ct_status status;

    if (!ids)
        return ct_fail(CT_ERR_NOMEM, "no memory to compare the lists of %d ranks", parent->size);
    status = parent->extension->gather(parent, OPERATION_NEW_GROUP, &id, ids, 1, CT_U64, caller);
    for (int i = 0; i < parent->size && status == CT_OK; i++)
        if (ids[i] != id)
            status = ct_fail(CT_ERR_MISMATCH,
                             "ct_new_group: rank %d gave another list of ranks than rank %d",
                             parent->ranks[i], parent->ranks[parent->rank]);
    free(ids);
    return status;
}

/* Sets *id to the id of the next group that is created from a list with local_sync.  The id depends
 * on the number of groups created from this list, which is the same on all members.  The number of
 * all groups of the parent may differ between ranks. */
static ct_status next_of_list(ct_group *parent, uint64_t list, uint64_t *id)
{
    struct list_births *births = parent->identity.births;

    while (births && births->list != list)
        births = births->next;
    if (!births) {
        births = calloc(1, sizeof *births);
        if (!births)
            return ct_fail(CT_ERR_NOMEM, "no memory for a group");
        births->list = list;
        births->next = parent->identity.births;
        parent->identity.births = births;
    }
    *id = id_mix(list, births->count++);
    return CT_OK;
}

static ct_status create_of_list(ct_group *parent, const int *list, int count,
                                const ct_group_options *options, uint64_t id, ct_group **group)
{
    char made_up[64];
    int *ranks = calloc((size_t)count, sizeof *ranks);
    struct group_plan plan = {
        .ranks = ranks, .size = count, .id = id, .born_in = options->local_sync ? 0 : parent->seq
    };
    ct_status status;

    if (!ranks)
        return ct_fail(CT_ERR_NOMEM, "no memory for a group of %d ranks", count);
    for (int i = 0; i < count; i++)
        ranks[i] = parent->ranks[list[i]];
    snprintf(made_up, sizeof made_up, "%.40s.%llu", parent->name,
             (unsigned long long)parent->identity.born);
    plan.name = options->name ? options->name : made_up;
    plan.algorithms = options->algorithms;
    plan.limit = options->timeout_ms > 0
                     ? (struct limit){ options->timeout_ms, "ct_group_options.timeout_ms" }
                     : parent->limit;
    status = group_create(parent, &plan, group);
    free(ranks);
    return status;
}

static ct_status new_group(const int *ranks, int count, const ct_group_options *options,
                           ct_group **group, const void *caller)
{
    const ct_group_options defaults = CT_GROUP_OPTIONS_INIT;
    ct_group *parent;
    uint64_t id = 0;
    ct_status status;

    if (!group)
        return ct_fail(CT_ERR_INVALID, "ct_new_group: the pointer for the group is NULL");
    if (!options)
        options = &defaults;
    status = group_options_check(options);
    if (status == CT_OK)
        status = group_resolve_member(options->parent, &parent);
    if (status == CT_OK)
        status = check_backend(parent, options->backend);
    if (status == CT_OK)
        status = check_list(parent, ranks, count);
    if (status == CT_OK)
        status = group_begin(parent, 0);
    if (status != CT_OK)
        return status;
    if (options->local_sync) {
        status =
            next_of_list(parent, hash_ranks(id_mix(parent->identity.id, 1), ranks, count), &id);
    } else {
        id = hash_ranks(id_mix(parent->identity.id, 2 + parent->identity.born++), ranks, count);
        status = same_list(parent, id, caller);
    }
    return status == CT_OK ? create_of_list(parent, ranks, count, options, id >> 1, group) : status;
}

ct_status ct_new_group_with(const int *ranks, int count, const ct_group_options *options,
                            ct_group **group)
{
    return new_group(ranks, count, options, group, __builtin_return_address(0));
}

ct_status ct_new_group(const int *ranks, int count, ct_group **group)
{
    return new_group(ranks, count, NULL, group, __builtin_return_address(0));
}

/* ---- Split --------------------------------------------------------------- */

struct choice {
    int32_t color, key;
    int32_t rank;
};

static int by_key(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Writes to `list` the parent's ranks that chose this color, ordered by key, then by rank.  Returns
 * their number. */
static int of_color(struct choice *all, int size, int color, int *list)
{
    int count = 0;

    qsort(all, (size_t)size, sizeof *all, by_key);
    for (int i = 0; i < size; i++)
        if (all[i].color == color)
            list[count++] = all[i].rank;
    return count;
}

static ct_status split_parent(ct_group *parent, int color, int key, struct choice *all, int *list,
                              ct_group **group, const void *caller)
{
    const ct_group_options options = CT_GROUP_OPTIONS_INIT;
    const struct choice mine = { color < 0 ? -1 : color, key, parent->rank };
    struct group_plan no_members = { .size = 0, .name = "of no color", .limit = { 1, "" } };
    const uint64_t birth = 2 + parent->identity.born++;
    const ct_status status = parent->extension->gather(
        parent, OPERATION_SPLIT_GROUP, &mine, all, sizeof mine / sizeof(int32_t), CT_I32, caller);
    int count;

    if (status != CT_OK)
        return status;
    if (color < 0)
        return group_create(parent, &no_members, group);
    count = of_color(all, parent->size, color, list);
    return create_of_list(parent, list, count, &options,
                          hash_ranks(id_mix(parent->identity.id, birth), list, count) >> 1, group);
}

static ct_status split_from(ct_group *parent, int color, int key, ct_group **group,
                            const void *caller)
{
    struct choice *all;
    ct_group *p;
    int *list;
    ct_status status;

    if (!group)
        return ct_fail(CT_ERR_INVALID, "ct_split_group: the pointer for the group is NULL");
    status = group_resolve_member(parent, &p);
    if (status == CT_OK)
        status = group_begin(p, 0);
    if (status != CT_OK)
        return status;
    all = calloc((size_t)p->size, sizeof *all);
    list = calloc((size_t)p->size, sizeof *list);
    status = all && list ? split_parent(p, color, key, all, list, group, caller)
                         : ct_fail(CT_ERR_NOMEM, "no memory to split %d ranks", p->size);
    free(all);
    free(list);
    return status;
}

ct_status ct_split_group(ct_group *parent, int color, int key, ct_group **group)
{
    return split_from(parent, color, key, group, __builtin_return_address(0));
}

ct_status ct_new_subgroups(int size, ct_group **group)
{
    ct_group *world;
    const ct_status status = group_resolve_member(CT_WORLD, &world);

    if (status != CT_OK)
        return status;
    if (size < 1 || world->size % size != 0)
        return ct_fail(CT_ERR_INVALID,
                       "ct_new_subgroups: a world of %d ranks can't be cut into groups of %d",
                       world->size, size);
    return split_from(world, world->rank / size, world->rank, group, __builtin_return_address(0));
}
