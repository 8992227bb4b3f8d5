/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_store_file.c - whatever lies in the file of a FileStore.
 *
 * The first byte says how many operations there are, the next ones which; all that follows
 * is the file's content, as others left it.  The same is done with a file that has only its
 * whole records: what a writer left that died half way must make no difference.  A store that
 * opens the file afterwards must see what the first one does.  Files are memory with a path. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/ct.h"
#include "tests/fuzz/input.h"

enum { MOST_OPERATIONS = 8 };

static const char *const keys[] = { "a", "b" };

/* ---- The operations ------------------------------------------------------------- */

static ct_status value_is_whole(ct_status status, void *value, size_t bytes)
{
    holds(status != CT_OK || ((char *)value)[bytes] == 0);
    if (status == CT_OK)
        free(value);
    return status;
}

static ct_status get(ct_store *store)
{
    void *value = NULL;
    size_t bytes = 0;

    return value_is_whole(ct_store_get(store, "a", 0, &value, &bytes), value, bytes);
}

static ct_status set(ct_store *store)
{
    return ct_store_set(store, "a", "value", 5);
}

static ct_status add(ct_store *store)
{
    int64_t sum;

    return ct_store_add(store, "a", 1, &sum);
}

static ct_status append(ct_store *store)
{
    return ct_store_append(store, "b", "more", 4);
}

static ct_status compare_set(ct_store *store)
{
    void *value = NULL;
    size_t bytes = 0;

    return value_is_whole(ct_store_compare_set(store, "a", "value", 5, "other", 5, &value, &bytes),
                          value, bytes);
}

static ct_status delete_key(ct_store *store)
{
    return ct_store_delete(store, "a", NULL);
}

static ct_status wait_for_both(ct_store *store)
{
    return ct_store_wait(store, keys, 2, 0);
}

static ct_status queue_push(ct_store *store)
{
    return ct_store_queue_push(store, "q", "x", 1);
}

static ct_status queue_pop(ct_store *store)
{
    void *value = NULL;
    size_t bytes = 0;

    return value_is_whole(ct_store_queue_pop(store, "q", 0, &value, &bytes), value, bytes);
}

static ct_status multi_get(ct_store *store)
{
    void *values[2] = { NULL };
    size_t bytes[2] = { 0 };
    const ct_status status = ct_store_multi_get(store, keys, 2, 0, values, bytes);

    for (int i = 0; i < 2; i++)
        value_is_whole(status, values[i], bytes[i]);
    return status;
}

static ct_status (*const operations[])(ct_store *) = {
    get, set, add, append, compare_set, delete_key, wait_for_both, queue_push, queue_pop, multi_get,
};

/* ---- Both see the same ------------------------------------------------------------ */

static void same_value(ct_store *one, ct_store *other, const char *key)
{
    void *value[2];
    size_t bytes[2];
    const ct_status status = ct_store_get(one, key, 0, &value[0], &bytes[0]);

    holds(ct_store_get(other, key, 0, &value[1], &bytes[1]) == status);
    if (status != CT_OK)
        return;
    holds(bytes[0] == bytes[1] && !memcmp(value[0], value[1], bytes[0]));
    free(value[0]);
    free(value[1]);
}

static void same_keys(ct_store *one, ct_store *other)
{
    int64_t count[2];
    char **all;
    int listed;

    holds(ct_store_num_keys(one, &count[0]) == CT_OK);
    holds(ct_store_num_keys(other, &count[1]) == CT_OK);
    holds(count[0] == count[1]);
    holds(ct_store_list_keys(one, &all, &listed) == CT_OK && listed <= count[0]);
    for (int i = 0; i < listed; i++)
        same_value(one, other, all[i]);
    free(all);
}

/* ---- One input -------------------------------------------------------------------- */

/* Records are a key and a value, each behind its length. */
static size_t whole_records(const uint8_t *data, size_t size)
{
    size_t at = 0, whole = 0;

    for (int i = 1; size - at >= 4; i++) {
        uint32_t length;

        memcpy(&length, data + at, 4);
        if (length > size - at - 4)
            break;
        at += 4 + length;
        if (i % 2 == 0)
            whole = at;
    }
    return whole;
}

static ct_store *open_with(int which, const uint8_t *data, size_t size)
{
    static int files[2] = { -1, -1 };
    ct_store *store;
    char path[64];

    if (files[which] < 0)
        holds((files[which] = memfd_create("store", MFD_CLOEXEC)) >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", files[which]);
    if (data) {
        holds(ftruncate(files[which], 0) == 0);
        holds(pwrite(files[which], data, size, 0) == (ssize_t)size);
    }
    holds(ct_store_file(path, 0, &store) == CT_OK);
    return store;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t count = size > 0 ? data[0] % (MOST_OPERATIONS + 1) : 0;
    const uint8_t *content = data + 1 + count;
    ct_store *store, *clean, *later;

    if (size < 1 + count)
        return -1;
    size -= 1 + count;
    store = open_with(0, content, size);
    clean = open_with(1, content, whole_records(content, size));
    for (size_t i = 0; i < count; i++) {
        ct_status (*const operation)(ct_store *) =
            operations[data[1 + i] % (sizeof operations / sizeof *operations)];
        const ct_status status = operation(store);

        holds(status == CT_OK || ct_last_error()[0]);
        holds(operation(clean) == status);
    }
    same_keys(store, clean);
    later = open_with(0, NULL, 0);
    same_keys(store, later);
    ct_store_close(later);
    ct_store_close(clean);
    ct_store_close(store);
    return 0;
}
