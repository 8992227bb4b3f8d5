/* SPDX-License-Identifier: Apache-2.0 */
/* local_store.c - the operations of a store whose map is in this process, under a mutex.  The hash
 * store and the file store use them.  The hash store needs nothing else, so it is also in this
 * file.
 *
 * enter() takes the mutex and calls the hook lock(), in which the file store reads what other
 * processes wrote.  After a change, local_store_changed() wakes waiting threads and calls the hook
 * changed(), in which the file store writes the change to the file.  A wait in the file store polls
 * the file. */
#include "runtime/store/local_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/util/clock.h"
#include "runtime/util/forks.h"

static struct local_store *local(ct_store *store)
{
    return (struct local_store *)store;
}

static ct_status enter(struct local_store *s, int to_write)
{
    ct_status status;

    pthread_mutex_lock(&s->mutex);
    status = s->hooks->lock(s, to_write);
    if (status != CT_OK)
        pthread_mutex_unlock(&s->mutex);
    return status;
}

static void local_store_leave(struct local_store *s)
{
    s->hooks->unlock(s);
    while (budget_sweep(&s->budget))
        ;
    pthread_mutex_unlock(&s->mutex);
}

static ct_status local_store_no_memory(void)
{
    return ct_fail(CT_ERR_NOMEM, "no memory for a value of the store");
}

static ct_status local_store_changed(struct local_store *s, struct bytes key,
                                     const struct entry *entry)
{
    const struct bytes value = entry_value(entry);

    pthread_cond_broadcast(&s->stored);
    return s->hooks->changed(s, key, &value);
}

static ct_status set_locked(struct local_store *s, struct bytes key, struct bytes value)
{
    struct entry *entry = map_get(&s->map, key);

    if (!entry || entry_set(&s->map, entry, value_create(&s->budget, value.data, value.size)) < 0)
        return local_store_no_memory();
    return local_store_changed(s, key, entry);
}

/* ---- Waiting ------------------------------------------------------------- */

/* Sleeps until a thread of this process stores a value or the deadline passes.  Deleting or popping
 * a value does not end the sleep.  Sleeps at most poll_ms, or 60 s if poll_ms is 0. */
static void sleep_until_stored(struct local_store *s, int64_t deadline)
{
    const int most = s->hooks->poll_ms ? s->hooks->poll_ms : 60000;
    const int64_t until = clock_ms() + time_left_ms(deadline, most);
    const struct timespec time = { .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };

    pthread_cond_timedwait(&s->stored, &s->mutex, &time);
}

/* Waits until all keys exist.  The caller has called enter().  If this fails, it unlocks the store,
 * and the caller must not call local_store_leave(). */
static ct_status wait_inside(struct local_store *s, const struct bytes *keys, int count,
                             int64_t deadline)
{
    const int64_t start = clock_ms();
    int ready = 0;

    for (;;) {
        ct_status status;

        while (ready < count && entry_ready(map_find(&s->map, keys[ready])))
            ready++;
        if (ready == count)
            return CT_OK;
        if (clock_ms() >= deadline) {
            local_store_leave(s);
            return ct_fail(CT_ERR_TIMEOUT, "the %s store: key \"%.*s\" is not there after %lld ms",
                           s->store.ops->kind, (int)keys[ready].size,
                           (const char *)keys[ready].data, (long long)(clock_ms() - start));
        }
        s->hooks->unlock(s);
        sleep_until_stored(s, deadline);
        status = s->hooks->lock(s, 0);
        if (status != CT_OK) {
            pthread_mutex_unlock(&s->mutex);
            return status;
        }
    }
}

static ct_status local_wait(ct_store *store, const struct bytes *keys, int count, int64_t deadline)
{
    ct_status status = enter(local(store), 0);

    if (status == CT_OK)
        status = wait_inside(local(store), keys, count, deadline);
    if (status == CT_OK)
        local_store_leave(local(store));
    return status;
}

static ct_status local_multi_get(ct_store *store, const struct bytes *keys, int count,
                                 int64_t deadline, void **values, size_t *sizes)
{
    ct_status status = enter(local(store), 0);
    int got = 0;

    if (status == CT_OK)
        status = wait_inside(local(store), keys, count, deadline);
    if (status != CT_OK)
        return status;
    for (; got < count && status == CT_OK; got += status == CT_OK) {
        const struct entry *entry = map_find(&local(store)->map, keys[got]);

        status = value_copy(entry_value(entry), &values[got], &sizes[got]);
    }
    local_store_leave(local(store));
    while (status != CT_OK && got > 0) {
        free(values[--got]);
        values[got] = NULL;
    }
    return status;
}

static ct_status local_get(ct_store *store, struct bytes key, int64_t deadline, void **value,
                           size_t *bytes)
{
    return local_multi_get(store, &key, 1, deadline, value, bytes);
}

/* ---- Without waiting ------------------------------------------------------- */

static ct_status local_set(ct_store *store, struct bytes key, struct bytes value)
{
    ct_status status = enter(local(store), 1);

    if (status != CT_OK)
        return status;
    status = set_locked(local(store), key, value);
    local_store_leave(local(store));
    return status;
}

static ct_status local_add(ct_store *store, struct bytes key, int64_t delta, int64_t *result)
{
    struct local_store *s = local(store);
    ct_status status = enter(s, 1);
    struct entry *entry;
    int failed;

    if (status != CT_OK)
        return status;
    entry = map_get(&s->map, key);
    failed = entry ? entry_add(&s->map, entry, delta, result) : -2;
    if (failed == -2)
        status = local_store_no_memory();
    else if (failed)
        status = ct_fail(CT_ERR_INVALID, "ct_store_add: the value of key \"%.*s\" is not a number",
                         (int)key.size, (const char *)key.data);
    else
        status = local_store_changed(s, key, entry);
    local_store_leave(s);
    return status;
}

static ct_status local_check(ct_store *store, const struct bytes *keys, int count, int *present)
{
    const ct_status status = enter(local(store), 0);

    if (status != CT_OK)
        return status;
    *present = 1;
    for (int i = 0; i < count && *present; i++)
        *present = entry_ready(map_find(&local(store)->map, keys[i]));
    local_store_leave(local(store));
    return CT_OK;
}

static ct_status local_check_each(ct_store *store, const struct bytes *keys, int count,
                                  char *present)
{
    const ct_status status = enter(local(store), 0);

    if (status != CT_OK)
        return status;
    for (int i = 0; i < count; i++)
        present[i] = (char)entry_ready(map_find(&local(store)->map, keys[i]));
    local_store_leave(local(store));
    return CT_OK;
}

static ct_status compare_set_locked(struct local_store *s, struct bytes key, struct bytes expected,
                                    struct bytes desired, void **value, size_t *bytes)
{
    const struct entry *entry = map_find(&s->map, key);
    const struct bytes now = entry_value(entry);
    const int present = entry && entry->value;
    ct_status status;

    if (!present && expected.size > 0)
        return value_copy(expected, value, bytes);
    if (present
        && (now.size != expected.size
            || (expected.size > 0 && memcmp(now.data, expected.data, expected.size))))
        return value_copy(now, value, bytes);
    status = set_locked(s, key, desired);
    return status == CT_OK ? value_copy(desired, value, bytes) : status;
}

static ct_status local_compare_set(ct_store *store, struct bytes key, struct bytes expected,
                                   struct bytes desired, void **value, size_t *bytes)
{
    ct_status status = enter(local(store), 1);

    if (status != CT_OK)
        return status;
    status = compare_set_locked(local(store), key, expected, desired, value, bytes);
    local_store_leave(local(store));
    return status;
}

static ct_status local_delete(ct_store *store, struct bytes key, int *deleted)
{
    struct local_store *s = local(store);
    ct_status status = enter(s, 1);
    struct entry *entry;

    if (status != CT_OK)
        return status;
    entry = map_find(&s->map, key);
    *deleted = entry && entry->value;
    if (*deleted) {
        entry_delete(&s->map, entry);
        map_drop_if_idle(&s->map, entry);
        status = s->hooks->changed(s, key, NULL);
    }
    local_store_leave(s);
    return status;
}

static ct_status local_num_keys(ct_store *store, int64_t *count)
{
    const ct_status status = enter(local(store), 0);

    if (status != CT_OK)
        return status;
    *count = local(store)->map.keys;
    local_store_leave(local(store));
    return CT_OK;
}

static ct_status local_append(ct_store *store, struct bytes key, struct bytes value)
{
    struct local_store *s = local(store);
    ct_status status = enter(s, 1);
    struct entry *entry;

    if (status != CT_OK)
        return status;
    entry = map_get(&s->map, key);
    status = entry && entry_append(&s->map, entry, value) == 0 ? local_store_changed(s, key, entry)
                                                               : local_store_no_memory();
    local_store_leave(s);
    return status;
}

static ct_status local_multi_set(ct_store *store, const struct bytes *keys, int count,
                                 const struct bytes *values)
{
    ct_status status = enter(local(store), 1);

    if (status != CT_OK)
        return status;
    for (int i = 0; i < count && status == CT_OK; i++)
        status = set_locked(local(store), keys[i], values[i]);
    local_store_leave(local(store));
    return status;
}

static ct_status local_list_keys(ct_store *store, char ***keys, int *count)
{
    struct key_list list = { 0 };
    const ct_status status = enter(local(store), 0);

    if (status != CT_OK)
        return status;
    for (const struct entry *entry = local(store)->map.oldest; entry; entry = entry->newer)
        key_list_add(&list, entry_key(entry));
    local_store_leave(local(store));
    return key_list_finish(&list, CT_OK, keys, count);
}

/* ---- Queues ---------------------------------------------------------------- */

/* Refuses queues in a store that other processes share, since queues exist only in this process. */
static ct_status check_queues(const struct local_store *s)
{
    return s->hooks->poll_ms
               ? ct_fail(CT_ERR_UNSUPPORTED, "the %s store has no queues", s->store.ops->kind)
               : CT_OK;
}

static ct_status local_queue_push(ct_store *store, struct bytes key, struct bytes value)
{
    struct local_store *s = local(store);
    ct_status status = check_queues(s);
    struct entry *entry;

    if (status == CT_OK)
        status = enter(s, 1);
    if (status != CT_OK)
        return status;
    entry = map_get(&s->map, key);
    if (!entry || entry_push(&s->map, entry, value_create(&s->budget, value.data, value.size)) < 0)
        status = local_store_no_memory();
    pthread_cond_broadcast(&s->stored);
    local_store_leave(s);
    return status;
}

static ct_status local_queue_pop(ct_store *store, struct bytes key, int64_t deadline, void **value,
                                 size_t *bytes)
{
    struct local_store *s = local(store);
    struct value *popped = NULL;
    struct entry *entry;
    ct_status status = check_queues(s);

    if (status == CT_OK)
        status = enter(s, 1);
    /* A plain value under this key also ends wait_inside(), although no queue has a value. */
    while (status == CT_OK && !popped) {
        entry = map_find(&s->map, key);
        popped = entry ? entry_pop(&s->map, entry) : NULL;
        if (!popped && entry && entry->value && clock_ms() >= deadline) {
            local_store_leave(s);
            return ct_fail(CT_ERR_TIMEOUT, "the queue \"%.*s\" is empty", (int)key.size,
                           (const char *)key.data);
        }
        if (!popped && entry && entry->value)
            sleep_until_stored(s, deadline);
        else if (!popped)
            status = wait_inside(s, &key, 1, deadline);
    }
    if (status != CT_OK)
        return status;
    status = value_copy((struct bytes){ popped->data, popped->size }, value, bytes);
    value_release(popped);
    map_drop_if_idle(&s->map, entry);
    local_store_leave(s);
    return status;
}

static ct_status local_queue_len(ct_store *store, struct bytes key, int64_t *length)
{
    const struct entry *entry;
    ct_status status = check_queues(local(store));

    if (status == CT_OK)
        status = enter(local(store), 0);
    if (status != CT_OK)
        return status;
    entry = map_find(&local(store)->map, key);
    *length = entry_queued(entry);
    local_store_leave(local(store));
    return CT_OK;
}

/* ---- Life ------------------------------------------------------------------ */

static void local_close(ct_store *store)
{
    local(store)->hooks->close(local(store));
}

#define LOCAL_OPS(name)                                                                         \
    {                                                                                           \
        .kind = name, .set = local_set, .get = local_get, .add = local_add, .wait = local_wait, \
        .check = local_check, .check_each = local_check_each, .compare_set = local_compare_set, \
        .delete_key = local_delete, .num_keys = local_num_keys, .append = local_append,         \
        .multi_get = local_multi_get, .multi_set = local_multi_set,                             \
        .queue_push = local_queue_push, .queue_pop = local_queue_pop,                           \
        .queue_len = local_queue_len, .list_keys = local_list_keys, .close = local_close        \
    }

static const struct store_ops hash_ops = LOCAL_OPS("hash"), file_ops = LOCAL_OPS("file");

ct_status local_store_init(struct local_store *store, const char *kind,
                           const struct local_hooks *hooks, int timeout_ms)
{
    pthread_condattr_t monotonic;

    store->store.ops = strcmp(kind, "file") ? &hash_ops : &file_ops;
    store->store.timeout_ms = timeout_ms;
    store->store.maker = forks_maker();
    store->hooks = hooks;
    store->budget = (struct budget){ .limit = SIZE_MAX };
    if (map_init(&store->map, &store->budget) < 0)
        return ct_fail(CT_ERR_NOMEM, "no memory for a store");
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->stored, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return CT_OK;
}

void local_store_done(struct local_store *store)
{
    map_done(&store->map);
    pthread_cond_destroy(&store->stored);
    pthread_mutex_destroy(&store->mutex);
}

/* ---- The hash store, for the threads of this process ------------------------ */

static ct_status hash_lock(struct local_store *store, int to_write)
{
    (void)store;
    (void)to_write;
    return CT_OK;
}

static ct_status hash_changed(struct local_store *store, struct bytes key,
                              const struct bytes *value)
{
    (void)store;
    (void)key;
    (void)value;
    return CT_OK;
}

static void hash_unlock(struct local_store *store)
{
    (void)store;
}

static void hash_close(struct local_store *store)
{
    local_store_done(store);
    free(store);
}

static const struct local_hooks hash_hooks = { hash_lock, hash_changed, hash_unlock, hash_close,
                                               0 };

ct_status ct_store_hash(ct_store **store)
{
    struct local_store *s = store ? calloc(1, sizeof *s) : NULL;
    ct_status status;

    if (!store)
        return ct_fail(CT_ERR_INVALID, "ct_store_hash: the pointer for the store is NULL");
    if (!s)
        return ct_fail(CT_ERR_NOMEM, "no memory for a store");
    status = local_store_init(s, "hash", &hash_hooks, -1);
    if (status != CT_OK) {
        free(s);
        return status;
    }
    *store = &s->store;
    return CT_OK;
}
