/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the public calls: arguments checked once, defaults put in, then the kind's own. */
#include "runtime/store.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"

static struct bytes key_of(const char *key)
{
    return (struct bytes){ key, strlen(key) };
}

static ct_status check(const ct_store *store, const char *key, const char *call)
{
    if (!store)
        return ct_fail(CT_ERR_INVALID, "ct_store_%s: the store is NULL", call);
    if (!key)
        return ct_fail(CT_ERR_INVALID, "ct_store_%s: the key is NULL", call);
    return CT_OK;
}

static ct_status check_value(const ct_store *store, const char *key, const void *value,
                             size_t bytes, const char *call)
{
    const ct_status status = check(store, key, call);

    if (status == CT_OK && !value && bytes > 0)
        return ct_fail(CT_ERR_INVALID,
                       "ct_store_%s: key \"%s\": the value is NULL but %zu bytes "
                       "long",
                       call, key, bytes);
    return status;
}

/* timeout_ms -1 is the store's own; the store's -1 is for ever. */
static int64_t deadline_of(const ct_store *store, int timeout_ms)
{
    return deadline_after(timeout_ms < 0 ? store->timeout_ms : timeout_ms);
}

/* Keys as bytes; NULL with the sentence set. */
static struct bytes *keys_of(const ct_store *store, const char *const *keys, int count,
                             const char *call)
{
    struct bytes *all;

    if (!store || count < 0 || (!keys && count > 0)) {
        ct_fail(CT_ERR_INVALID, "ct_store_%s: the store or the keys are NULL", call);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        if (!keys[i]) {
            ct_fail(CT_ERR_INVALID, "ct_store_%s: key %d is NULL", call, i);
            return NULL;
        }
    all = malloc(((size_t)count + 1) * sizeof *all);
    if (!all)
        ct_fail(CT_ERR_NOMEM, "ct_store_%s: no memory for %d keys", call, count);
    for (int i = 0; all && i < count; i++)
        all[i] = key_of(keys[i]);
    return all;
}

ct_status ct_store_set(ct_store *store, const char *key, const void *value, size_t bytes)
{
    const ct_status status = check_value(store, key, value, bytes, "set");

    return status == CT_OK ? store->ops->set(store, key_of(key), (struct bytes){ value, bytes })
                           : status;
}

ct_status ct_store_get(ct_store *store, const char *key, int timeout_ms, void **value,
                       size_t *bytes)
{
    size_t size;
    ct_status status = check(store, key, "get");

    if (status == CT_OK && !value)
        status = ct_fail(CT_ERR_INVALID, "ct_store_get: no place for the value was given");
    if (status == CT_OK)
        status = store->ops->get(store, key_of(key), deadline_of(store, timeout_ms), value, &size);
    if (status == CT_OK && bytes)
        *bytes = size;
    return status;
}

ct_status ct_store_add(ct_store *store, const char *key, int64_t delta, int64_t *result)
{
    int64_t sum;
    ct_status status = check(store, key, "add");

    if (status == CT_OK)
        status = store->ops->add(store, key_of(key), delta, &sum);
    if (status == CT_OK && result)
        *result = sum;
    return status;
}

ct_status ct_store_wait(ct_store *store, const char *const *keys, int count, int timeout_ms)
{
    struct bytes *all = keys_of(store, keys, count, "wait");
    ct_status status;

    if (!all)
        return CT_ERR_INVALID;
    status = store->ops->wait(store, all, count, deadline_of(store, timeout_ms));
    free(all);
    return status;
}

ct_status ct_store_check(ct_store *store, const char *const *keys, int count, int *present)
{
    struct bytes *all;
    ct_status status;

    if (!present)
        return ct_fail(CT_ERR_INVALID, "ct_store_check: no place for the answer was given");
    all = keys_of(store, keys, count, "check");
    if (!all)
        return CT_ERR_INVALID;
    status = store->ops->check(store, all, count, present);
    free(all);
    return status;
}

ct_status ct_store_compare_set(ct_store *store, const char *key, const void *expected,
                               size_t expected_bytes, const void *desired, size_t desired_bytes,
                               void **value, size_t *bytes)
{
    void *answer;
    size_t size;
    ct_status status = check_value(store, key, expected, expected_bytes, "compare_set");

    if (status == CT_OK)
        status = check_value(store, key, desired, desired_bytes, "compare_set");
    if (status == CT_OK)
        status =
            store->ops->compare_set(store, key_of(key), (struct bytes){ expected, expected_bytes },
                                    (struct bytes){ desired, desired_bytes }, &answer, &size);
    if (status != CT_OK)
        return status;
    if (value)
        *value = answer;
    else
        free(answer);
    if (bytes)
        *bytes = size;
    return CT_OK;
}

ct_status ct_store_delete(ct_store *store, const char *key, int *deleted)
{
    int was_there;
    ct_status status = check(store, key, "delete");

    if (status == CT_OK)
        status = store->ops->delete_key(store, key_of(key), &was_there);
    if (status == CT_OK && deleted)
        *deleted = was_there;
    return status;
}

ct_status ct_store_num_keys(ct_store *store, int64_t *count)
{
    const ct_status status = check(store, "", "num_keys");

    if (status == CT_OK && !count)
        return ct_fail(CT_ERR_INVALID, "ct_store_num_keys: no place for the answer was given");
    return status == CT_OK ? store->ops->num_keys(store, count) : status;
}

ct_status ct_store_append(ct_store *store, const char *key, const void *value, size_t bytes)
{
    const ct_status status = check_value(store, key, value, bytes, "append");

    return status == CT_OK ? store->ops->append(store, key_of(key), (struct bytes){ value, bytes })
                           : status;
}

ct_status ct_store_multi_get(ct_store *store, const char *const *keys, int count, int timeout_ms,
                             void **values, size_t *bytes)
{
    struct bytes *all;
    ct_status status;

    if (count > 0 && (!values || !bytes))
        return ct_fail(CT_ERR_INVALID, "ct_store_multi_get: no place for the values was given");
    all = keys_of(store, keys, count, "multi_get");
    if (!all)
        return CT_ERR_INVALID;
    status =
        store->ops->multi_get(store, all, count, deadline_of(store, timeout_ms), values, bytes);
    free(all);
    return status;
}

ct_status ct_store_multi_set(ct_store *store, const char *const *keys, int count,
                             const void *const *values, const size_t *bytes)
{
    struct bytes *all, *data;
    ct_status status = CT_OK;

    if (count > 0 && (!values || !bytes))
        return ct_fail(CT_ERR_INVALID, "ct_store_multi_set: the values are NULL");
    all = keys_of(store, keys, count, "multi_set");
    if (!all)
        return CT_ERR_INVALID;
    data = malloc(((size_t)count + 1) * sizeof *data);
    if (!data)
        status = ct_fail(CT_ERR_NOMEM, "ct_store_multi_set: no memory for %d values", count);
    for (int i = 0; i < count && status == CT_OK; i++) {
        data[i] = (struct bytes){ values[i], bytes[i] };
        status = check_value(store, keys[i], values[i], bytes[i], "multi_set");
    }
    if (status == CT_OK)
        status = store->ops->multi_set(store, all, count, data);
    free(data);
    free(all);
    return status;
}

ct_status ct_store_queue_push(ct_store *store, const char *key, const void *value, size_t bytes)
{
    const ct_status status = check_value(store, key, value, bytes, "queue_push");

    return status == CT_OK
               ? store->ops->queue_push(store, key_of(key), (struct bytes){ value, bytes })
               : status;
}

ct_status ct_store_queue_pop(ct_store *store, const char *key, int timeout_ms, void **value,
                             size_t *bytes)
{
    size_t size;
    ct_status status = check(store, key, "queue_pop");

    if (status == CT_OK && !value)
        status = ct_fail(CT_ERR_INVALID, "ct_store_queue_pop: no place for the value was given");
    if (status == CT_OK)
        status =
            store->ops->queue_pop(store, key_of(key), deadline_of(store, timeout_ms), value, &size);
    if (status == CT_OK && bytes)
        *bytes = size;
    return status;
}

ct_status ct_store_queue_len(ct_store *store, const char *key, int64_t *length)
{
    const ct_status status = check(store, key, "queue_len");

    if (status == CT_OK && !length)
        return ct_fail(CT_ERR_INVALID, "ct_store_queue_len: no place for the answer was given");
    return status == CT_OK ? store->ops->queue_len(store, key_of(key), length) : status;
}

ct_status ct_store_list_keys(ct_store *store, char ***keys, int *count)
{
    const ct_status status = check(store, "", "list_keys");

    if (status == CT_OK && (!keys || !count))
        return ct_fail(CT_ERR_INVALID, "ct_store_list_keys: no place for the keys was given");
    return status == CT_OK ? store->ops->list_keys(store, keys, count) : status;
}

ct_status ct_store_close(ct_store *store)
{
    if (store)
        store->ops->close(store);
    return CT_OK;
}
