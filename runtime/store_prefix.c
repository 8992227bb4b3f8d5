/* SPDX-License-Identifier: Apache-2.0 */
/* store_prefix.c - another store with every key under "prefix/". */
#include <stdlib.h>
#include <string.h>

#include "runtime/store.h"
#include "runtime/store_lists.h"

struct prefix_store {
    struct ct_store store;
    ct_store *base;
    size_t size; /* of prefix, its "/" counted */
    char prefix[];
};

static ct_store *base_of(const ct_store *store)
{
    return ((const struct prefix_store *)store)->base;
}

/* malloc'ed; data NULL when there is no memory. */
static struct bytes under(const ct_store *store, struct bytes key)
{
    const struct prefix_store *p = (const struct prefix_store *)store;
    char *data = malloc(p->size + key.size + 1);

    if (!data) {
        ct_fail(CT_ERR_NOMEM, "no memory for a key");
        return (struct bytes){ NULL, 0 };
    }
    memcpy(data, p->prefix, p->size);
    if (key.size > 0)
        memcpy(data + p->size, key.data, key.size);
    return (struct bytes){ data, p->size + key.size };
}

static void drop(struct bytes key)
{
    free((void *)(uintptr_t)key.data);
}

static void drop_all(struct bytes *keys, int count)
{
    for (int i = 0; keys && i < count; i++)
        drop(keys[i]);
    free(keys);
}

static struct bytes *all_under(const ct_store *store, const struct bytes *keys, int count)
{
    struct bytes *all = calloc((size_t)count + 1, sizeof *all);

    for (int i = 0; all && i < count; i++) {
        all[i] = under(store, keys[i]);
        if (!all[i].data) {
            drop_all(all, count);
            return NULL;
        }
    }
    if (!all)
        ct_fail(CT_ERR_NOMEM, "no memory for %d keys", count);
    return all;
}

static ct_status prefix_set(ct_store *store, struct bytes key, struct bytes value)
{
    const struct bytes full = under(store, key);
    ct_status status = CT_ERR_NOMEM;

    if (full.data)
        status = base_of(store)->ops->set(base_of(store), full, value);
    drop(full);
    return status;
}

static ct_status prefix_get(ct_store *store, struct bytes key, int64_t deadline, void **value,
                            size_t *bytes)
{
    const struct bytes full = under(store, key);
    ct_status status = CT_ERR_NOMEM;

    if (full.data)
        status = base_of(store)->ops->get(base_of(store), full, deadline, value, bytes);
    drop(full);
    return status;
}

static ct_status prefix_add(ct_store *store, struct bytes key, int64_t delta, int64_t *result)
{
    const struct bytes full = under(store, key);
    ct_status status = CT_ERR_NOMEM;

    if (full.data)
        status = base_of(store)->ops->add(base_of(store), full, delta, result);
    drop(full);
    return status;
}

static ct_status prefix_wait(ct_store *store, const struct bytes *keys, int count, int64_t deadline)
{
    struct bytes *all = all_under(store, keys, count);
    ct_status status = CT_ERR_NOMEM;

    if (all)
        status = base_of(store)->ops->wait(base_of(store), all, count, deadline);
    drop_all(all, count);
    return status;
}

static ct_status prefix_check(ct_store *store, const struct bytes *keys, int count, int *present)
{
    struct bytes *all = all_under(store, keys, count);
    ct_status status = CT_ERR_NOMEM;

    if (all)
        status = base_of(store)->ops->check(base_of(store), all, count, present);
    drop_all(all, count);
    return status;
}

static ct_status prefix_compare_set(ct_store *store, struct bytes key, struct bytes expected,
                                    struct bytes desired, void **value, size_t *bytes)
{
    const struct bytes full = under(store, key);
    ct_status status = CT_ERR_NOMEM;

    if (full.data)
        status =
            base_of(store)->ops->compare_set(base_of(store), full, expected, desired, value, bytes);
    drop(full);
    return status;
}

static ct_status prefix_delete(ct_store *store, struct bytes key, int *deleted)
{
    const struct bytes full = under(store, key);
    ct_status status = CT_ERR_NOMEM;

    if (full.data)
        status = base_of(store)->ops->delete_key(base_of(store), full, deleted);
    drop(full);
    return status;
}

/* The whole store's, as in torch.distributed. */
static ct_status prefix_num_keys(ct_store *store, int64_t *count)
{
    return base_of(store)->ops->num_keys(base_of(store), count);
}

static ct_status prefix_append(ct_store *store, struct bytes key, struct bytes value)
{
    const struct bytes full = under(store, key);
    ct_status status = CT_ERR_NOMEM;

    if (full.data)
        status = base_of(store)->ops->append(base_of(store), full, value);
    drop(full);
    return status;
}

static ct_status prefix_multi_get(ct_store *store, const struct bytes *keys, int count,
                                  int64_t deadline, void **values, size_t *sizes)
{
    struct bytes *all = all_under(store, keys, count);
    ct_status status = CT_ERR_NOMEM;

    if (all)
        status =
            base_of(store)->ops->multi_get(base_of(store), all, count, deadline, values, sizes);
    drop_all(all, count);
    return status;
}

static ct_status prefix_multi_set(ct_store *store, const struct bytes *keys, int count,
                                  const struct bytes *values)
{
    struct bytes *all = all_under(store, keys, count);
    ct_status status = CT_ERR_NOMEM;

    if (all)
        status = base_of(store)->ops->multi_set(base_of(store), all, count, values);
    drop_all(all, count);
    return status;
}

static ct_status prefix_queue_push(ct_store *store, struct bytes key, struct bytes value)
{
    const struct bytes full = under(store, key);
    ct_status status = CT_ERR_NOMEM;

    if (full.data)
        status = base_of(store)->ops->queue_push(base_of(store), full, value);
    drop(full);
    return status;
}

static ct_status prefix_queue_pop(ct_store *store, struct bytes key, int64_t deadline, void **value,
                                  size_t *bytes)
{
    const struct bytes full = under(store, key);
    ct_status status = CT_ERR_NOMEM;

    if (full.data)
        status = base_of(store)->ops->queue_pop(base_of(store), full, deadline, value, bytes);
    drop(full);
    return status;
}

static ct_status prefix_queue_len(ct_store *store, struct bytes key, int64_t *length)
{
    const struct bytes full = under(store, key);
    ct_status status = CT_ERR_NOMEM;

    if (full.data)
        status = base_of(store)->ops->queue_len(base_of(store), full, length);
    drop(full);
    return status;
}

/* Only our own, without the prefix. */
static ct_status prefix_list_keys(ct_store *store, char ***keys, int *count)
{
    const struct prefix_store *p = (const struct prefix_store *)store;
    struct key_list own = { 0 };
    char **all;
    int n;
    ct_status status = base_of(store)->ops->list_keys(base_of(store), &all, &n);

    if (status != CT_OK)
        return status;
    for (int i = 0; i < n; i++)
        if (!strncmp(all[i], p->prefix, p->size))
            key_list_add(&own, (struct bytes){ all[i] + p->size, strlen(all[i]) - p->size });
    free(all);
    return key_list_finish(&own, CT_OK, keys, count);
}

static void prefix_close(ct_store *store)
{
    free(store);
}

static const struct store_ops prefix_ops = { .kind = "prefix",
                                             .set = prefix_set,
                                             .get = prefix_get,
                                             .add = prefix_add,
                                             .wait = prefix_wait,
                                             .check = prefix_check,
                                             .compare_set = prefix_compare_set,
                                             .delete_key = prefix_delete,
                                             .num_keys = prefix_num_keys,
                                             .append = prefix_append,
                                             .multi_get = prefix_multi_get,
                                             .multi_set = prefix_multi_set,
                                             .queue_push = prefix_queue_push,
                                             .queue_pop = prefix_queue_pop,
                                             .queue_len = prefix_queue_len,
                                             .list_keys = prefix_list_keys,
                                             .close = prefix_close };

ct_status ct_store_prefix(ct_store *base, const char *prefix, ct_store **store)
{
    struct prefix_store *p;
    size_t length;

    if (!base || !prefix || !store)
        return ct_fail(CT_ERR_INVALID, "ct_store_prefix: the base, the prefix or the place for the "
                                       "store is NULL");
    length = strlen(prefix);
    p = malloc(sizeof *p + length + 2);
    if (!p)
        return ct_fail(CT_ERR_NOMEM, "no memory for a store");
    p->store = (struct ct_store){ &prefix_ops, base->timeout_ms };
    p->base = base;
    p->size = length + 1;
    memcpy(p->prefix, prefix, length);
    p->prefix[length] = '/';
    p->prefix[length + 1] = 0;
    *store = &p->store;
    return CT_OK;
}

int store_client_fd(ct_store *store)
{
    while (store->ops == &prefix_ops)
        store = base_of(store);
    return store_client_socket(store);
}
