/* SPDX-License-Identifier: Apache-2.0 */
/* store_all_gather.c - an all-gather over the store.
 *
 * Each rank sets its value under its own key "<what>/<rank>", and increments a count.  The rank
 * that raises the count to the number of ranks reads all these keys.  Then it sets the key
 * "<what>/all", the key of all.  The value of this key is the sizes of all ranks' values, 32 bits
 * each, followed by the values.  The other ranks wait only for the key of all.  If each rank waited
 * for the keys of all ranks, the store's work would grow with the square of the number of ranks.
 *
 * A rank may set a notice under the key of all, which ends the waits for that key.  The values, or
 * another notice, then get the next key: "<what>/all/1", then "<what>/all/2". */
#include "runtime/bootstrap/store_all_gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/store/store.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define KEY_BYTES 32
#define LEAST_TIME_MS 1000 /* least timeout for reading keys that are set */

/* The first bytes of a notice.  In joined values, the first four bytes are a size, and no value has
 * this size. */
static const unsigned char notice_start[8] = { 0xff, 0xff, 0xff, 0xff, 's', 'a', 'y', 's' };

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

/* Makes the names of all ranks' keys.  Call keys_free() even if it fails. */
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

/* ---- Setting values --------------------------------------------------------- */

/* Joins the values into the value for the key of all.  The caller frees *joined. */
static ct_status join_values(void *const *values, const size_t *sizes, int size,
                             unsigned char **joined, size_t *bytes)
{
    size_t at = (size_t)size * sizeof(uint32_t);

    *bytes = at;
    for (int i = 0; i < size; i++)
        *bytes += sizes[i];
    *joined = malloc(*bytes);
    if (!*joined)
        return ct_fail(CT_ERR_NOMEM, "no memory for the values of %d ranks", size);
    for (int i = 0; i < size; i++) {
        const uint32_t own = (uint32_t)sizes[i];

        memcpy(*joined + (size_t)i * sizeof own, &own, sizeof own);
        memcpy(*joined + at, values[i], sizes[i]);
        at += sizes[i];
    }
    return CT_OK;
}

/* Returns the timeout, in ms, for reading keys that are set.  The timeout is not 0 at the deadline,
 * since then the keys can still be read, but a caller's store may give up at once with timeout
 * 0. */
static int time_for_get(int64_t deadline)
{
    const int left = time_left_ms(deadline, INT32_MAX);

    return left > LEAST_TIME_MS ? left : LEAST_TIME_MS;
}

/* Reads and joins the values of all ranks, which have set their keys. */
static ct_status read_and_join(ct_store *store, const char *what, int size, int64_t deadline,
                               unsigned char **joined, size_t *bytes)
{
    void **values = calloc((size_t)size, sizeof *values);
    size_t *sizes = calloc((size_t)size, sizeof *sizes);
    struct keys keys;
    ct_status status = keys_make(&keys, what, size);

    *joined = NULL;
    if (status == CT_OK && (!values || !sizes))
        status = ct_fail(CT_ERR_NOMEM, "no memory for the values of %d ranks", size);
    if (status == CT_OK)
        status = ct_store_multi_get(store, keys.names, size, time_for_get(deadline), values, sizes);
    if (status == CT_OK)
        status = join_values(values, sizes, size, joined, bytes);
    for (int i = 0; values && i < size; i++)
        free(values[i]);
    free(values);
    free(sizes);
    keys_free(&keys);
    return status;
}

/* Names the key of all after `notices` notices. */
static void name_of_all(char key[KEY_BYTES], const char *what, int notices)
{
    if (notices == 0)
        snprintf(key, KEY_BYTES, "%s/all", what);
    else
        snprintf(key, KEY_BYTES, "%s/all/%d", what, notices);
}

static int is_notice(const void *value, size_t bytes)
{
    return bytes > sizeof notice_start && !memcmp(value, notice_start, sizeof notice_start);
}

/* Sets the first key of all that has no notice.  Sets *there to 1, and no key, if the values of all
 * ranks were set before.  After compare_set, the key is set once more.  The reason is that
 * compare_set of PyTorch's store without libuv does not wake the clients that wait for the key. */
static ct_status put_behind_notices(ct_store *store, const char *what, const void *own,
                                    size_t bytes, int *there)
{
    char key[KEY_BYTES];
    ct_status status = CT_OK;

    *there = 0;
    for (int i = 0, done = 0; status == CT_OK && !done; i++) {
        void *found = NULL;
        size_t size = 0;

        name_of_all(key, what, i);
        status = ct_store_compare_set(store, key, "", 0, own, bytes, &found, &size);
        if (status == CT_OK) {
            done = size == bytes && !memcmp(found, own, bytes);
            *there = !done && !is_notice(found, size);
            if (done)
                status = ct_store_set(store, key, own, bytes);
            done |= *there;
        }
        free(found);
    }
    return status;
}

ct_status store_all_gather_claim(ct_store *store, const char *what, int rank, const void *own,
                                 size_t bytes, void **before, size_t *before_bytes)
{
    char key[KEY_BYTES];
    ct_status status;

    *before = NULL;
    snprintf(key, sizeof key, "%s/%d", what, rank);
    status = ct_store_compare_set(store, key, "", 0, own, bytes, before, before_bytes);
    if (status == CT_OK && *before_bytes == bytes && !memcmp(*before, own, bytes)) {
        free(*before);
        *before = NULL;
    }
    return status;
}

ct_status store_all_gather_count(ct_store *store, const char *what, int size, int64_t deadline)
{
    char count[KEY_BYTES];
    unsigned char *joined;
    size_t bytes;
    int64_t given = 0;
    int there;
    ct_status status;

    snprintf(count, sizeof count, "%s/count", what);
    status = ct_store_add(store, count, 1, &given);
    if (status != CT_OK || given != size)
        return status;
    status = read_and_join(store, what, size, deadline, &joined, &bytes);
    if (status == CT_OK)
        status = put_behind_notices(store, what, joined, bytes, &there);
    free(joined);
    return status;
}

ct_status store_all_gather_give(ct_store *store, const char *what, int rank, int size,
                                int64_t deadline, const void *own, size_t bytes)
{
    char key[KEY_BYTES];
    ct_status status;

    snprintf(key, sizeof key, "%s/%d", what, rank);
    status = ct_store_set(store, key, own, bytes);
    return status == CT_OK ? store_all_gather_count(store, what, size, deadline) : status;
}

ct_status store_all_gather_notify(ct_store *store, const char *what, const char *text,
                                  int *complete)
{
    const size_t bytes = sizeof notice_start + strlen(text);
    unsigned char *notice = malloc(bytes);
    ct_status status;

    if (!notice)
        return ct_fail(CT_ERR_NOMEM, "no memory for a notice");
    memcpy(notice, notice_start, sizeof notice_start);
    memcpy(notice + sizeof notice_start, text, strlen(text));
    status = put_behind_notices(store, what, notice, bytes, complete);
    free(notice);
    return status;
}

/* ---- Missing ranks ------------------------------------------------------------ */

/* Writes the ranks i with present[i] == 0 as "2, 5-7". */
static void store_gather_list_missing(const char *present, int count, char *text, size_t size)
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

/* Writes the ranks that have not set their keys to `missing`, or "" if all ranks have.  Asks the
 * store once for all ranks. */
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
        store_gather_list_missing(present, size, missing, room);
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
    return ct_fail_because((struct blame){ atoi(missing), BLAME_LATE }, CT_ERR_TIMEOUT,
                           "rank %s (of %d ranks) did not come within %lld ms; were all ranks "
                           "started with the same MASTER_ADDR and MASTER_PORT?",
                           missing, size, (long long)(clock_ms() - start));
}

/* Logs the missing ranks, unless another waiting rank has set the key "<what>/warns" before. */
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
        log_line(LOG_WAITS,
                 "waiting %d s for rank %s (of %d ranks); were all ranks started with the same "
                 "MASTER_ADDR and MASTER_PORT?",
                 (int)((clock_ms() - start) / 1000), missing, size);
    return status;
}

/* ---- Reading values ----------------------------------------------------------- */

/* Waits for the key of all.  Sets *is_joined to 1 if the key is set.  At the deadline, returns
 * CT_OK with *is_joined 0 if all ranks have set their own keys, since the rank that should set the
 * key of all may have died. */
static ct_status store_gather_wait_for_all(ct_store *store, const char *what, const char *all,
                                           int rank, int size, int64_t deadline, int *is_joined)
{
    const int64_t start = clock_ms();
    const int warns = log_wants(LOG_WAITS);
    const char *keys[1] = { all };
    ct_status status;

    status =
        ct_store_wait(store, keys, 1, time_left_ms(deadline, warns ? LONG_WAIT_MS : INT32_MAX));
    if (status == CT_ERR_TIMEOUT && warns && clock_ms() < deadline) {
        status = warn_of_missing(store, what, rank, size, start);
        if (status == CT_OK)
            status = ct_store_wait(store, keys, 1, time_left_ms(deadline, INT32_MAX));
    }
    *is_joined = status == CT_OK;
    return status == CT_ERR_TIMEOUT ? store_all_gather_late(store, what, size, start) : status;
}

/* Finds the values in all->memory, which has `bytes` bytes.  Checks the sizes of the values, since
 * other programs may write to the store, too. */
static ct_status split(struct gathered *all, const char *what, int size, size_t bytes)
{
    const size_t head = (size_t)size * sizeof(uint32_t);
    uint32_t own;

    all->at = calloc((size_t)size + 1, sizeof *all->at);
    if (!all->at)
        return ct_fail(CT_ERR_NOMEM, "no memory for the values of %d ranks", size);
    for (int i = 0; i < size && head <= bytes; i++) {
        memcpy(&own, (unsigned char *)all->memory + (size_t)i * sizeof own, sizeof own);
        all->at[i + 1] = all->at[i] + own;
    }
    if (head + all->at[size] != bytes)
        return ct_fail(CT_ERR_MISMATCH,
                       "a rank speaks another version of libct: the store's key %s/all has %zu "
                       "bytes for %d ranks",
                       what, bytes, size);
    all->data = (unsigned char *)all->memory + head;
    return CT_OK;
}

/* Copies the text of a notice to all->notice, with a NUL byte at the end. */
static ct_status take_notice(struct gathered *all, size_t bytes)
{
    const size_t length = bytes - sizeof notice_start;
    char *text = malloc(length + 1);

    if (!text)
        return ct_fail(CT_ERR_NOMEM, "no memory for a notice");
    memcpy(text, (char *)all->memory + sizeof notice_start, length);
    text[length] = 0;
    free(all->memory);
    all->memory = all->notice = text;
    return CT_OK;
}

ct_status store_all_gather_take(ct_store *store, const char *what, int rank, int size,
                                int64_t deadline, struct gathered *all)
{
    return store_all_gather_next(store, what, rank, size, 0, deadline, all);
}

ct_status store_all_gather_next(ct_store *store, const char *what, int rank, int size, int notices,
                                int64_t deadline, struct gathered *all)
{
    char key[KEY_BYTES];
    unsigned char *joined;
    size_t bytes = 0;
    int is_joined = 0;
    ct_status status;

    *all = (struct gathered){ 0 };
    name_of_all(key, what, notices);
    status = store_gather_wait_for_all(store, what, key, rank, size, deadline, &is_joined);
    if (status == CT_OK && is_joined) {
        status = ct_store_get(store, key, time_for_get(deadline), &all->memory, &bytes);
    } else if (status == CT_OK) {
        status = read_and_join(store, what, size, deadline, &joined, &bytes);
        all->memory = joined;
    }
    if (status == CT_OK && is_notice(all->memory, bytes))
        return take_notice(all, bytes);
    return status == CT_OK ? split(all, what, size, bytes) : status;
}

void gathered_free(struct gathered *all)
{
    free(all->memory);
    free(all->at);
    *all = (struct gathered){ 0 };
}
