/* SPDX-License-Identifier: Apache-2.0 */
/* wrapped_store.c - a store whose operations are functions of the caller (ct_store_wrap()).
 *
 * The caller may be torch.distributed, which has its own stores, or a program with a key-value
 * server.  multi_get, multi_set and check_each are not in ct_store_ops, so they call the caller's
 * functions once for each key.  Queues, num_keys and list_keys are not supported. */
#include <stdlib.h>
#include <string.h>

#include "runtime/store/store.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"

struct wrapped_store {
    struct ct_store store;
    ct_store_ops ops;
    void *arg;
};

static struct wrapped_store *wrapped(ct_store *store)
{
    return (struct wrapped_store *)store;
}

/* ---- Keys as strings -------------------------------------------------------- */

static char *string_of(struct bytes key)
{
    char *text = malloc(key.size + 1);

    if (!text) {
        ct_fail(CT_ERR_NOMEM, "no memory for a key of %zu bytes", key.size);
        return NULL;
    }
    memcpy(text, key.data, key.size);
    text[key.size] = 0;
    return text;
}

static void free_strings(char **texts, int count)
{
    for (int i = 0; texts && i < count; i++)
        free(texts[i]);
    free(texts);
}

static char **strings_of(const struct bytes *keys, int count)
{
    char **texts = calloc((size_t)count + 1, sizeof *texts);

    if (!texts) {
        ct_fail(CT_ERR_NOMEM, "no memory for %d keys", count);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        if (!(texts[i] = string_of(keys[i]))) {
            free_strings(texts, count);
            return NULL;
        }
    return texts;
}

/* Returns the time left until the deadline, in ms; -1 if there is no deadline. */
static int wrapped_timeout_of(int64_t deadline)
{
    return deadline == NO_DEADLINE ? -1 : time_left_ms(deadline, INT32_MAX);
}

/* Sets the error's text if status is an error, since the caller's operation can't set one.  Frees
 * the key.  Returns status. */
static ct_status wrapped_say(ct_status status, const char *operation, char *key)
{
    if (status != CT_OK)
        ct_fail(status, "the caller's store: %s of key \"%s\": %s", operation, key,
                ct_strerror(status));
    free(key);
    return status;
}

static ct_status wrapped_lacks(const char *operation)
{
    return ct_fail(CT_ERR_UNSUPPORTED, "the caller's store has no %s (ct_store_ops)", operation);
}

/* ---- One key ---------------------------------------------------------------- */

static ct_status wrapped_set(ct_store *store, struct bytes key, struct bytes value)
{
    struct wrapped_store *s = wrapped(store);
    char *text = string_of(key);

    return text ? wrapped_say(s->ops.set(s->arg, text, value.data, value.size), "set", text)
                : CT_ERR_NOMEM;
}

static ct_status wrapped_get(ct_store *store, struct bytes key, int64_t deadline, void **value,
                             size_t *bytes)
{
    struct wrapped_store *s = wrapped(store);
    char *text = string_of(key);

    return text ? wrapped_say(s->ops.get(s->arg, text, wrapped_timeout_of(deadline), value, bytes),
                              "get", text)
                : CT_ERR_NOMEM;
}

static ct_status wrapped_add(ct_store *store, struct bytes key, int64_t delta, int64_t *result)
{
    struct wrapped_store *s = wrapped(store);
    char *text = string_of(key);

    return text ? wrapped_say(s->ops.add(s->arg, text, delta, result), "add", text) : CT_ERR_NOMEM;
}

static ct_status wrapped_compare_set(ct_store *store, struct bytes key, struct bytes expected,
                                     struct bytes desired, void **value, size_t *bytes)
{
    struct wrapped_store *s = wrapped(store);
    char *text = string_of(key);

    return text ? wrapped_say(s->ops.compare_set(s->arg, text, expected.data, expected.size,
                                                 desired.data, desired.size, value, bytes),
                              "compare_set", text)
                : CT_ERR_NOMEM;
}

static ct_status wrapped_delete(ct_store *store, struct bytes key, int *deleted)
{
    struct wrapped_store *s = wrapped(store);
    char *text;

    if (!s->ops.delete_key)
        return wrapped_lacks("delete_key");
    text = string_of(key);
    return text ? wrapped_say(s->ops.delete_key(s->arg, text, deleted), "delete", text)
                : CT_ERR_NOMEM;
}

static ct_status wrapped_append(ct_store *store, struct bytes key, struct bytes value)
{
    struct wrapped_store *s = wrapped(store);
    char *text;

    if (!s->ops.append)
        return wrapped_lacks("append");
    text = string_of(key);
    return text ? wrapped_say(s->ops.append(s->arg, text, value.data, value.size), "append", text)
                : CT_ERR_NOMEM;
}

/* ---- Several keys ----------------------------------------------------------- */

/* Sets the error's text if status is an error, and frees texts.  Returns status.  The text names
 * only the first key, since the caller's operation does not say which key failed. */
static ct_status say_of_all(ct_status status, const char *operation, char **texts, int count)
{
    char *first = count > 0 ? texts[0] : NULL;

    if (first)
        texts[0] = NULL;
    free_strings(texts, count);
    return first ? wrapped_say(status, operation, first) : status;
}

static ct_status wrapped_wait(ct_store *store, const struct bytes *keys, int count,
                              int64_t deadline)
{
    struct wrapped_store *s = wrapped(store);
    char **texts = strings_of(keys, count);

    return texts ? say_of_all(
               s->ops.wait(s->arg, (const char *const *)texts, count, wrapped_timeout_of(deadline)),
               "wait", texts, count)
                 : CT_ERR_NOMEM;
}

static ct_status wrapped_check(ct_store *store, const struct bytes *keys, int count, int *present)
{
    struct wrapped_store *s = wrapped(store);
    char **texts = strings_of(keys, count);

    return texts ? say_of_all(s->ops.check(s->arg, (const char *const *)texts, count, present),
                              "check", texts, count)
                 : CT_ERR_NOMEM;
}

static ct_status wrapped_check_each(ct_store *store, const struct bytes *keys, int count,
                                    char *present)
{
    ct_status status = CT_OK;

    for (int i = 0; i < count && status == CT_OK; i++) {
        int there = 0;

        status = wrapped_check(store, &keys[i], 1, &there);
        present[i] = there != 0;
    }
    return status;
}

static ct_status wrapped_multi_get(ct_store *store, const struct bytes *keys, int count,
                                   int64_t deadline, void **values, size_t *sizes)
{
    ct_status status = CT_OK;
    int i = 0;

    while (i < count && status == CT_OK) {
        status = wrapped_get(store, keys[i], deadline, &values[i], &sizes[i]);
        i += status == CT_OK;
    }
    while (status != CT_OK && i-- > 0)
        free(values[i]);
    return status;
}

static ct_status wrapped_multi_set(ct_store *store, const struct bytes *keys, int count,
                                   const struct bytes *values)
{
    ct_status status = CT_OK;

    for (int i = 0; i < count && status == CT_OK; i++)
        status = wrapped_set(store, keys[i], values[i]);
    return status;
}

/* ---- Unsupported operations ------------------------------------------------- */

static ct_status wrapped_num_keys(ct_store *store, int64_t *count)
{
    (void)store;
    (void)count;
    return wrapped_lacks("num_keys");
}

static ct_status wrapped_queue_push(ct_store *store, struct bytes key, struct bytes value)
{
    (void)store;
    (void)key;
    (void)value;
    return wrapped_lacks("queues");
}

static ct_status wrapped_queue_pop(ct_store *store, struct bytes key, int64_t deadline,
                                   void **value, size_t *bytes)
{
    (void)store;
    (void)key;
    (void)deadline;
    (void)value;
    (void)bytes;
    return wrapped_lacks("queues");
}

static ct_status wrapped_queue_len(ct_store *store, struct bytes key, int64_t *length)
{
    (void)store;
    (void)key;
    (void)length;
    return wrapped_lacks("queues");
}

static ct_status wrapped_list_keys(ct_store *store, char ***keys, int *count)
{
    (void)store;
    (void)keys;
    (void)count;
    return wrapped_lacks("list_keys");
}

/* ---- Life ------------------------------------------------------------------- */

static void wrapped_close(ct_store *store)
{
    struct wrapped_store *s = wrapped(store);

    if (s->ops.close)
        s->ops.close(s->arg);
    free(s);
}

static const struct store_ops wrapped_ops = {
    .kind = "wrapped",
    .set = wrapped_set,
    .get = wrapped_get,
    .add = wrapped_add,
    .wait = wrapped_wait,
    .check = wrapped_check,
    .check_each = wrapped_check_each,
    .compare_set = wrapped_compare_set,
    .delete_key = wrapped_delete,
    .num_keys = wrapped_num_keys,
    .append = wrapped_append,
    .multi_get = wrapped_multi_get,
    .multi_set = wrapped_multi_set,
    .queue_push = wrapped_queue_push,
    .queue_pop = wrapped_queue_pop,
    .queue_len = wrapped_queue_len,
    .list_keys = wrapped_list_keys,
    .close = wrapped_close,
};

ct_status ct_store_wrap(const ct_store_ops *ops, void *arg, int timeout_ms, ct_store **store)
{
    struct wrapped_store *s;

    if (!ops || !store)
        return ct_fail(CT_ERR_INVALID,
                       "ct_store_wrap: the operations or the pointer for the store is NULL");
    if (ops->size < sizeof *ops)
        return ct_fail(CT_ERR_INVALID,
                       "ct_store_wrap: ops.size is %zu, not sizeof(ct_store_ops), %zu", ops->size,
                       sizeof *ops);
    if (!ops->set || !ops->get || !ops->add || !ops->wait || !ops->check || !ops->compare_set)
        return ct_fail(CT_ERR_INVALID, "ct_store_wrap: set, get, add, wait, check and compare_set "
                                       "have to be given");
    if (!(s = calloc(1, sizeof *s)))
        return ct_fail(CT_ERR_NOMEM, "no memory for a store");
    s->store.ops = &wrapped_ops;
    s->store.timeout_ms = timeout_ms;
    s->store.maker = forks_maker();
    s->ops = *ops;
    s->arg = arg;
    *store = &s->store;
    return CT_OK;
}
