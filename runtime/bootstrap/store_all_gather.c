/* SPDX-License-Identifier: Apache-2.0 */
/* store_all_gather.c - an all-gather over the store: a key for each rank, a count of those that
 * were set, and a key that the rank sets which counts to the last one.  What waits waits for that
 * key alone: if each of them waited for all keys, the store would keep a note for each pair. */
#include "runtime/bootstrap/store_all_gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/store/store.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define KEY_BYTES 32
#define WARN_AFTER_MS 5000

/* ---- Giving ----------------------------------------------------------------- */

ct_status store_all_gather_give(ct_store *store, const char *what, int rank, int size,
                                const void *own, size_t bytes)
{
    char key[KEY_BYTES], count[KEY_BYTES], all[KEY_BYTES];
    int64_t given = 0;
    ct_status status;

    snprintf(key, sizeof key, "%s/%d", what, rank);
    snprintf(count, sizeof count, "%s/count", what);
    snprintf(all, sizeof all, "%s/all", what);
    status = ct_store_set(store, key, own, bytes);
    if (status == CT_OK)
        status = ct_store_add(store, count, 1, &given);
    if (status == CT_OK && given == size)
        status = ct_store_set(store, all, "1", 1);
    return status;
}

/* ---- The keys of all ranks ---------------------------------------------------- */

struct keys {
    char (*text)[KEY_BYTES];
    const char **names;
};

static void keys_free(struct keys *keys)
{
    free(keys->text);
    free(keys->names);
}

/* keys_free() is owed even if it fails. */
static ct_status keys_make(struct keys *keys, const char *what, int size)
{
    keys->text = calloc((size_t)size, sizeof *keys->text);
    keys->names = calloc((size_t)size, sizeof *keys->names);
    if (!keys->text || !keys->names)
        return ct_fail(CT_ERR_NOMEM, "no memory for %d ranks", size);
    for (int i = 0; i < size; i++) {
        snprintf(keys->text[i], KEY_BYTES, "%s/%d", what, i);
        keys->names[i] = keys->text[i];
    }
    return CT_OK;
}

/* ---- Missing ranks ------------------------------------------------------------ */

/* "2, 5-7" */
static void list_missing(const char *present, int count, char *text, size_t size)
{
    size_t used = 0;
    int first = -1;

    text[0] = 0;
    for (int i = 0; i <= count; i++) {
        const int is_present = i == count || present[i];

        if (!is_present && first < 0)
            first = i;
        if (is_present && first >= 0 && used < size) {
            used += (size_t)snprintf(text + used, size - used, "%s%d", used ? ", " : "", first);
            if (i - 1 > first && used < size)
                used += (size_t)snprintf(text + used, size - used, "-%d", i - 1);
            first = -1;
        }
    }
}

/* One question for all ranks.  missing: "" when none is. */
static ct_status find_missing(ct_store *store, const char *what, int size, char *missing,
                              size_t room)
{
    char *present = calloc((size_t)size, 1);
    struct keys keys;
    ct_status status = keys_make(&keys, what, size);

    if (status == CT_OK && !present)
        status = ct_fail(CT_ERR_NOMEM, "no memory for %d ranks", size);
    if (status == CT_OK)
        status = store_check_each(store, keys.names, size, present);
    if (status == CT_OK)
        list_missing(present, size, missing, room);
    keys_free(&keys);
    free(present);
    return status;
}

ct_status store_all_gather_late(ct_store *store, const char *what, int size, int64_t start)
{
    char missing[256];
    const ct_status status = find_missing(store, what, size, missing, sizeof missing);

    if (status != CT_OK || !missing[0])
        return status;
    return ct_fail(CT_ERR_TIMEOUT,
                   "after %lld ms, of %d ranks these did not come: rank %s "
                   "(were they started, with the same MASTER_ADDR and MASTER_PORT?)",
                   (long long)(clock_ms() - start), size, missing);
}

/* Of those that wait, the first one that says so warns. */
static ct_status warn_of_missing(ct_store *store, const char *what, int rank, int size,
                                 int64_t start)
{
    char key[KEY_BYTES], own[16], missing[256] = "";
    void *first = NULL;
    size_t bytes = 0;
    ct_status status;

    snprintf(key, sizeof key, "%s/warns", what);
    snprintf(own, sizeof own, "%d", rank);
    status = ct_store_compare_set(store, key, "", 0, own, strlen(own), &first, &bytes);
    if (status == CT_OK && bytes == strlen(own) && !memcmp(first, own, bytes))
        status = find_missing(store, what, size, missing, sizeof missing);
    free(first);
    if (status == CT_OK && missing[0])
        log_line(LOG_WARN, "waiting for %d ranks since %d s; missing: rank %s", size,
                 (int)((clock_ms() - start) / 1000), missing);
    return status;
}

/* ---- Taking ------------------------------------------------------------------- */

/* The rank that counted to the last one may have died before it set the key: so at the deadline the
 * keys of the ranks decide. */
static ct_status wait_for_all(ct_store *store, const char *what, int rank, int size,
                              int64_t deadline)
{
    const int64_t start = clock_ms();
    const int warns = log_wants(LOG_WARN);
    char all[KEY_BYTES];
    const char *keys[1] = { all };
    ct_status status;

    snprintf(all, sizeof all, "%s/all", what);
    status =
        ct_store_wait(store, keys, 1, time_left_ms(deadline, warns ? WARN_AFTER_MS : INT32_MAX));
    if (status == CT_ERR_TIMEOUT && warns && clock_ms() < deadline) {
        status = warn_of_missing(store, what, rank, size, start);
        if (status == CT_OK)
            status = ct_store_wait(store, keys, 1, time_left_ms(deadline, INT32_MAX));
    }
    return status == CT_ERR_TIMEOUT ? store_all_gather_late(store, what, size, start) : status;
}

ct_status store_all_gather_take(ct_store *store, const char *what, int rank, int size,
                                int64_t deadline, void **values, size_t *sizes)
{
    struct keys keys;
    ct_status status = keys_make(&keys, what, size);

    memset(values, 0, (size_t)size * sizeof *values);
    if (status == CT_OK)
        status = wait_for_all(store, what, rank, size, deadline);
    if (status == CT_OK)
        status = ct_store_multi_get(store, keys.names, size, time_left_ms(deadline, INT32_MAX),
                                    values, sizes);
    keys_free(&keys);
    return status;
}
