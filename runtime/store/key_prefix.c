/* SPDX-License-Identifier: Apache-2.0 */
/* key_prefix.c - a name in front of every key: each prefix adds its own, the store at the bottom
 * gets the whole.
 *
 * Every public call with keys passes here, so this is also where a fault may strike it. */
#include "runtime/store/key_prefix.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/fault/fault_injection.h"

static size_t full_size(const ct_store *store, const char *key)
{
    size_t size = strlen(key);

    for (; store->base; store = store->base)
        size += store->prefix_size;
    return size;
}

/* The prefix nearest the bottom comes first: filled from the end. */
static void fill_key(char *to, size_t size, const ct_store *store, const char *key)
{
    char *at = to + size - strlen(key);

    memcpy(at, key, strlen(key));
    for (; store->base; store = store->base) {
        at -= store->prefix_size;
        memcpy(at, store->prefix, store->prefix_size);
    }
}

ct_status key_begin(struct full_key *full, ct_store *store, const char *key, const char *call)
{
    ct_status status;
    size_t size;

    if (!store || !key)
        return ct_fail(CT_ERR_INVALID, "ct_store_%s: the %s is NULL", call,
                       store ? "key" : "store");
    status = store_check_process(store, call);
    if (status != CT_OK)
        return status;
    fault_begin(store->faults, NULL, FAULT_STORE, 0);
    size = full_size(store, key);
    full->bottom = store_bottom(store);
    full->memory = size > sizeof full->small ? malloc(size) : NULL;
    if (size > sizeof full->small && !full->memory)
        return ct_fail(CT_ERR_NOMEM, "ct_store_%s: no memory for a key of %zu bytes", call, size);
    full->key = (struct bytes){ full->memory ? full->memory : full->small, size };
    fill_key(full->memory ? full->memory : full->small, size, store, key);
    return CT_OK;
}

ct_status key_end(struct full_key *full, ct_status status)
{
    free(full->memory);
    return status;
}

struct bytes *keys_begin(const ct_store *store, const char *const *keys, int count,
                         const char *call)
{
    struct bytes *all;
    size_t text = 0;
    char *at;

    if (!store || count < 0 || (!keys && count > 0)) {
        ct_fail(CT_ERR_INVALID, "ct_store_%s: the store or the keys are NULL", call);
        return NULL;
    }
    if (store_check_process(store, call) != CT_OK)
        return NULL;
    fault_begin(store->faults, NULL, FAULT_STORE, 0);
    for (int i = 0; i < count; i++) {
        if (!keys[i]) {
            ct_fail(CT_ERR_INVALID, "ct_store_%s: key %d is NULL", call, i);
            return NULL;
        }
        text += full_size(store, keys[i]);
    }
    all = malloc(((size_t)count + 1) * sizeof *all + text);
    if (!all) {
        ct_fail(CT_ERR_NOMEM, "ct_store_%s: no memory for %d keys", call, count);
        return NULL;
    }
    at = (char *)(all + count + 1);
    for (int i = 0; i < count; i++) {
        all[i] = (struct bytes){ at, full_size(store, keys[i]) };
        fill_key(at, all[i].size, store, keys[i]);
        at += all[i].size;
    }
    return all;
}
