/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the public calls of all kinds of stores.
 *
 * A call checks its arguments, sets defaults, puts the prefixes in front of its keys, and calls the
 * operation of the store's kind.  A prefix store, made by ct_store_prefix(), only adds a prefix to
 * each key.  The store below all prefix stores does the work.  A prefix store is a holder of the
 * store below it.  When the last holder closes a store, the store is freed.
 *
 * Every call with keys calls key_begin() or keys_begin(), so these functions inject the faults of
 * CT_FAULT.
 */
#include "runtime/store/store.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/fault/fault_injection.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"

/* ---- Results that the kinds return ----------------------------------------- */

void key_list_add(struct key_list *list, struct bytes key)
{
    if (list->size + key.size + 1 > list->room) {
        const size_t room = 2 * (list->size + key.size) + 256;
        char *text = realloc(list->text, room);

        if (!text) {
            list->failed = 1;
            return;
        }
        list->text = text;
        list->room = room;
    }
    memcpy(list->text + list->size, key.data, key.size);
    list->text[list->size + key.size] = 0;
    list->size += key.size + 1;
    list->count++;
}

ct_status key_list_finish(struct key_list *list, ct_status status, char ***keys, int *count)
{
    const size_t pointers = ((size_t)list->count + 1) * sizeof **keys;
    char **block = status == CT_OK && !list->failed ? malloc(pointers + list->size) : NULL;
    char *text;

    if (status == CT_OK && !block)
        status = ct_fail(CT_ERR_NOMEM, "no memory for %d keys", list->count);
    if (status == CT_OK) {
        text = (char *)block + pointers;
        if (list->size > 0)
            memcpy(text, list->text, list->size);
        for (int i = 0; i < list->count; i++) {
            block[i] = text;
            text += strlen(text) + 1;
        }
        block[list->count] = NULL;
        *keys = block;
        *count = list->count;
    }
    free(list->text);
    return status;
}

ct_status value_copy(struct bytes from, void **value, size_t *bytes)
{
    char *copy = malloc(from.size + 1);

    if (!copy)
        return ct_fail(CT_ERR_NOMEM, "no memory for a value of %zu bytes", from.size);
    if (from.size > 0)
        memcpy(copy, from.data, from.size);
    copy[from.size] = 0;
    *value = copy;
    *bytes = from.size;
    return CT_OK;
}

/* ---- Prefix stores, holders ------------------------------------------------ */

ct_store *store_bottom(ct_store *store)
{
    while (store->base)
        store = store->base;
    return store;
}

/* Returns CT_ERR_INVALID if this process is a fork of the process that made the store.  call is the
 * name of the public call without "ct_store_", such as "set". */
static ct_status store_check_process(const ct_store *store, const char *call)
{
    if (store->maker == this_process)
        return CT_OK;
    forks_refuse("the store", store->maker);
    return ct_fail_in(CT_ERR_INVALID, "ct_store_%s: ", call);
}

ct_store *store_hold(ct_store *store)
{
    atomic_fetch_add(&store->others, 1);
    return store;
}

ct_status ct_store_prefix(ct_store *base, const char *prefix, ct_store **store)
{
    ct_store *s;
    size_t length;
    ct_status status;

    if (!base || !prefix || !store)
        return ct_fail(
            CT_ERR_INVALID,
            "ct_store_prefix: the base, the prefix or the pointer for the store is NULL");
    status = store_check_process(base, "prefix");
    if (status != CT_OK)
        return status;
    length = strlen(prefix);
    s = calloc(1, sizeof *s);
    if (!s || !(s->prefix = malloc(length + 1))) {
        free(s);
        return ct_fail(CT_ERR_NOMEM, "no memory for a store");
    }
    s->maker = this_process;
    s->base = store_hold(base);
    s->timeout_ms = base->timeout_ms;
    memcpy(s->prefix, prefix, length);
    s->prefix[length] = '/';
    s->prefix_size = length + 1;
    *store = s;
    return CT_OK;
}

ct_status ct_store_close(ct_store *store)
{
    const ct_status status = store ? store_check_process(store, "close") : CT_OK;

    if (!store || status != CT_OK || atomic_fetch_sub(&store->others, 1) > 0)
        return status;
    if (store->base) {
        ct_store *base = store->base;

        free(store->prefix);
        free(store);
        ct_store_close(base);
    } else {
        store->ops->close(store);
    }
    return CT_OK;
}
/* ---- Keys under their prefixes ---------------------------------------------- */

struct full_key {
    ct_store *bottom;
    struct bytes key;
    char *memory; /* holds the key if it does not fit into `small`; else NULL */
    char small[256];
};

static size_t full_size(const ct_store *store, const char *key)
{
    size_t size = strlen(key);

    for (; store->base; store = store->base)
        size += store->prefix_size;
    return size;
}

/* Writes the prefixes and the key.  Fills `to` from its end to its front, because the prefix of the
 * lowest prefix store comes first. */
static void fill_key(char *to, size_t size, const ct_store *store, const char *key)
{
    char *at = to + size - strlen(key);

    memcpy(at, key, strlen(key));
    for (; store->base; store = store->base) {
        at -= store->prefix_size;
        memcpy(at, store->prefix, store->prefix_size);
    }
}

/* Checks the arguments of a call with one key, and makes the full key.  After CT_OK the caller must
 * call key_end(). */
static ct_status key_begin(struct full_key *full, ct_store *store, const char *key,
                           const char *call)
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

/* Frees the full key, and returns status. */
static ct_status key_end(struct full_key *full, ct_status status)
{
    free(full->memory);
    return status;
}

/* Returns the full keys in one block, which the caller frees.  The block has the array and then the
 * text of the keys.  Returns NULL and sets the error if this fails. */
static struct bytes *keys_begin(const ct_store *store, const char *const *keys, int count,
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

/* ---- Arguments ------------------------------------------------------------- */

static ct_status check_value(const char *key, const void *value, size_t bytes, const char *call)
{
    if (!value && bytes > 0)
        return ct_fail(CT_ERR_INVALID,
                       "ct_store_%s: key \"%s\": the value is NULL but %zu bytes long", call,
                       key ? key : "", bytes);
    return CT_OK;
}

static ct_status store_check_place(const void *place, const char *call)
{
    return place ? CT_OK
                 : ct_fail(CT_ERR_INVALID, "ct_store_%s: the pointer for the answer is NULL", call);
}

static ct_status check_store(const ct_store *store, const char *call)
{
    return store ? store_check_process(store, call)
                 : ct_fail(CT_ERR_INVALID, "ct_store_%s: the store is NULL", call);
}

/* Returns the deadline of a call.  If timeout_ms is -1, the store's timeout applies.  If the
 * store's timeout is -1, there is no deadline. */
static int64_t deadline_of(const ct_store *store, int timeout_ms)
{
    return deadline_after(timeout_ms < 0 ? store->timeout_ms : timeout_ms);
}

/* ---- Values ---------------------------------------------------------------- */

ct_status ct_store_set(ct_store *store, const char *key, const void *value, size_t bytes)
{
    struct full_key k;
    ct_status status = check_value(key, value, bytes, "set");

    if (status == CT_OK)
        status = key_begin(&k, store, key, "set");
    if (status != CT_OK)
        return status;
    return key_end(&k, k.bottom->ops->set(k.bottom, k.key, (struct bytes){ value, bytes }));
}

ct_status ct_store_get(ct_store *store, const char *key, int timeout_ms, void **value,
                       size_t *bytes)
{
    struct full_key k;
    size_t size = 0;
    ct_status status = store_check_place(value, "get");

    if (status == CT_OK)
        status = key_begin(&k, store, key, "get");
    if (status != CT_OK)
        return status;
    status = k.bottom->ops->get(k.bottom, k.key, deadline_of(store, timeout_ms), value, &size);
    if (status == CT_OK && bytes)
        *bytes = size;
    return key_end(&k, status);
}

ct_status ct_store_add(ct_store *store, const char *key, int64_t delta, int64_t *result)
{
    struct full_key k;
    int64_t sum = 0;
    ct_status status = key_begin(&k, store, key, "add");

    if (status != CT_OK)
        return status;
    status = k.bottom->ops->add(k.bottom, k.key, delta, &sum);
    if (status == CT_OK && result)
        *result = sum;
    return key_end(&k, status);
}

ct_status ct_store_wait(ct_store *store, const char *const *keys, int count, int timeout_ms)
{
    struct bytes *all = keys_begin(store, keys, count, "wait");
    ct_store *bottom;
    ct_status status;

    if (!all)
        return CT_ERR_INVALID;
    bottom = store_bottom(store);
    status = bottom->ops->wait(bottom, all, count, deadline_of(store, timeout_ms));
    free(all);
    return status;
}

ct_status ct_store_check(ct_store *store, const char *const *keys, int count, int *present)
{
    struct bytes *all;
    ct_store *bottom;
    ct_status status = store_check_place(present, "check");

    if (status != CT_OK)
        return status;
    all = keys_begin(store, keys, count, "check");
    if (!all)
        return CT_ERR_INVALID;
    bottom = store_bottom(store);
    status = bottom->ops->check(bottom, all, count, present);
    free(all);
    return status;
}

ct_status store_check_each(ct_store *store, const char *const *keys, int count, char *present)
{
    struct bytes *all = keys_begin(store, keys, count, "check");
    ct_store *bottom;
    ct_status status;

    if (!all)
        return CT_ERR_INVALID;
    bottom = store_bottom(store);
    status = bottom->ops->check_each(bottom, all, count, present);
    free(all);
    return status;
}

ct_status ct_store_compare_set(ct_store *store, const char *key, const void *expected,
                               size_t expected_bytes, const void *desired, size_t desired_bytes,
                               void **value, size_t *bytes)
{
    struct full_key k;
    void *answer;
    size_t size;
    ct_status status = check_value(key, expected, expected_bytes, "compare_set");

    if (status == CT_OK)
        status = check_value(key, desired, desired_bytes, "compare_set");
    if (status == CT_OK)
        status = key_begin(&k, store, key, "compare_set");
    if (status != CT_OK)
        return status;
    status = k.bottom->ops->compare_set(k.bottom, k.key, (struct bytes){ expected, expected_bytes },
                                        (struct bytes){ desired, desired_bytes }, &answer, &size);
    if (status != CT_OK)
        return key_end(&k, status);
    if (value)
        *value = answer;
    else
        free(answer);
    if (bytes)
        *bytes = size;
    return key_end(&k, CT_OK);
}

ct_status ct_store_delete(ct_store *store, const char *key, int *deleted)
{
    struct full_key k;
    int was_there = 0;
    ct_status status = key_begin(&k, store, key, "delete");

    if (status != CT_OK)
        return status;
    status = k.bottom->ops->delete_key(k.bottom, k.key, &was_there);
    if (status == CT_OK && deleted)
        *deleted = was_there;
    return key_end(&k, status);
}

ct_status ct_store_append(ct_store *store, const char *key, const void *value, size_t bytes)
{
    struct full_key k;
    ct_status status = check_value(key, value, bytes, "append");

    if (status == CT_OK)
        status = key_begin(&k, store, key, "append");
    if (status != CT_OK)
        return status;
    return key_end(&k, k.bottom->ops->append(k.bottom, k.key, (struct bytes){ value, bytes }));
}

ct_status ct_store_multi_get(ct_store *store, const char *const *keys, int count, int timeout_ms,
                             void **values, size_t *bytes)
{
    struct bytes *all;
    ct_store *bottom;
    ct_status status =
        count > 0 ? store_check_place(values && bytes ? values : NULL, "multi_get") : CT_OK;

    if (status != CT_OK)
        return status;
    all = keys_begin(store, keys, count, "multi_get");
    if (!all)
        return CT_ERR_INVALID;
    bottom = store_bottom(store);
    status =
        bottom->ops->multi_get(bottom, all, count, deadline_of(store, timeout_ms), values, bytes);
    free(all);
    return status;
}

ct_status ct_store_multi_set(ct_store *store, const char *const *keys, int count,
                             const void *const *values, const size_t *bytes)
{
    struct bytes *all, *data;
    ct_store *bottom;
    ct_status status = CT_OK;

    if (count > 0 && (!values || !bytes))
        return ct_fail(CT_ERR_INVALID, "ct_store_multi_set: the values are NULL");
    all = keys_begin(store, keys, count, "multi_set");
    if (!all)
        return CT_ERR_INVALID;
    data = malloc(((size_t)count + 1) * sizeof *data);
    if (!data)
        status = ct_fail(CT_ERR_NOMEM, "ct_store_multi_set: no memory for %d values", count);
    for (int i = 0; i < count && status == CT_OK; i++) {
        data[i] = (struct bytes){ values[i], bytes[i] };
        status = check_value(keys[i], values[i], bytes[i], "multi_set");
    }
    bottom = store_bottom(store);
    if (status == CT_OK)
        status = bottom->ops->multi_set(bottom, all, count, data);
    free(data);
    free(all);
    return status;
}

/* ---- Queues ---------------------------------------------------------------- */

ct_status ct_store_queue_push(ct_store *store, const char *key, const void *value, size_t bytes)
{
    struct full_key k;
    ct_status status = check_value(key, value, bytes, "queue_push");

    if (status == CT_OK)
        status = key_begin(&k, store, key, "queue_push");
    if (status != CT_OK)
        return status;
    return key_end(&k, k.bottom->ops->queue_push(k.bottom, k.key, (struct bytes){ value, bytes }));
}

ct_status ct_store_queue_pop(ct_store *store, const char *key, int timeout_ms, void **value,
                             size_t *bytes)
{
    struct full_key k;
    size_t size = 0;
    ct_status status = store_check_place(value, "queue_pop");

    if (status == CT_OK)
        status = key_begin(&k, store, key, "queue_pop");
    if (status != CT_OK)
        return status;
    status =
        k.bottom->ops->queue_pop(k.bottom, k.key, deadline_of(store, timeout_ms), value, &size);
    if (status == CT_OK && bytes)
        *bytes = size;
    return key_end(&k, status);
}

ct_status ct_store_queue_len(ct_store *store, const char *key, int64_t *length)
{
    struct full_key k;
    ct_status status = store_check_place(length, "queue_len");

    if (status == CT_OK)
        status = key_begin(&k, store, key, "queue_len");
    if (status != CT_OK)
        return status;
    return key_end(&k, k.bottom->ops->queue_len(k.bottom, k.key, length));
}

/* ---- All keys --------------------------------------------------------------- */

/* Counts all keys of the store below the prefix stores, even without this store's prefix, as
 * torch.distributed does. */
ct_status ct_store_num_keys(ct_store *store, int64_t *count)
{
    ct_status status = check_store(store, "num_keys");

    if (status == CT_OK)
        status = store_check_place(count, "num_keys");
    return status == CT_OK ? store_bottom(store)->ops->num_keys(store_bottom(store), count)
                           : status;
}

/* Sets *keys to the keys that begin with the prefix, and removes the prefix from them.  Frees
 * `all`. */
static ct_status own_keys(const struct full_key *prefix, char **all, int n, char ***keys,
                          int *count)
{
    struct key_list own = { 0 };

    for (int i = 0; i < n; i++)
        if (!strncmp(all[i], prefix->key.data, prefix->key.size))
            key_list_add(&own, (struct bytes){ all[i] + prefix->key.size,
                                               strlen(all[i]) - prefix->key.size });
    free(all);
    return key_list_finish(&own, CT_OK, keys, count);
}

ct_status ct_store_list_keys(ct_store *store, char ***keys, int *count)
{
    struct full_key prefix;
    char **all;
    int n;
    ct_status status = store_check_place(keys && count ? keys : NULL, "list_keys");

    if (status == CT_OK)
        status = key_begin(&prefix, store, "", "list_keys");
    if (status != CT_OK)
        return status;
    status = prefix.bottom->ops->list_keys(prefix.bottom, &all, &n);
    if (status == CT_OK)
        status = own_keys(&prefix, all, n, keys, count);
    return key_end(&prefix, status);
}

ct_status ct_store_wait_workers(ct_store *store, int world_size)
{
    ct_status status = check_store(store, "wait_workers");
    ct_store *bottom;

    if (status != CT_OK)
        return status;
    if (world_size < 1)
        return ct_fail(CT_ERR_INVALID,
                       "ct_store_wait_workers: %d workers; the world must have at least 1",
                       world_size);
    bottom = store_bottom(store);
    if (!bottom->ops->wait_workers)
        return ct_fail(CT_ERR_UNSUPPORTED,
                       "ct_store_wait_workers: a %s store has no server that counts its workers",
                       bottom->ops->kind);
    return bottom->ops->wait_workers(bottom, world_size, deadline_of(store, -1));
}
