/* SPDX-License-Identifier: Apache-2.0 */
/* hash_store.c - a store in this process's memory, for threads. */
#include <stdlib.h>

#include "runtime/store/local_store.h"

static ct_status lock(struct local_store *store, int to_write)
{
    (void)store;
    (void)to_write;
    return CT_OK;
}

static ct_status changed(struct local_store *store, struct bytes key, const struct bytes *value)
{
    (void)store;
    (void)key;
    (void)value;
    return CT_OK;
}

static void unlock(struct local_store *store)
{
    (void)store;
}

static void close_hash(struct local_store *store)
{
    local_store_done(store);
    free(store);
}

static const struct local_hooks hooks = { lock, changed, unlock, close_hash, 0 };

ct_status ct_store_hash(ct_store **store)
{
    struct local_store *s = store ? calloc(1, sizeof *s) : NULL;
    ct_status status;

    if (!store)
        return ct_fail(CT_ERR_INVALID, "ct_store_hash: no place for the store was given");
    if (!s)
        return ct_fail(CT_ERR_NOMEM, "no memory for a store");
    status = local_store_init(s, "hash", &hooks, -1);
    if (status != CT_OK) {
        free(s);
        return status;
    }
    *store = &s->store;
    return CT_OK;
}
