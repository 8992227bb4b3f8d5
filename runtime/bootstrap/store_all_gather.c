/* SPDX-License-Identifier: Apache-2.0 */
/* store_all_gather.c - an all-gather over the store, for ranks that have no other way yet. */
#include "runtime/bootstrap/store_all_gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/store/store.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define KEY_BYTES 64
#define WARN_AFTER_MS 5000

struct meeting {
    ct_store *store;
    int rank, size;
    char (*text)[KEY_BYTES];
    const char **keys;
    void **values;
    size_t *sizes;
    char *present; /* [size] as of the last look */
};

static void meeting_done(struct meeting *m)
{
    for (int i = 0; m->values && i < m->size; i++)
        free(m->values[i]);
    free(m->text);
    free(m->keys);
    free(m->values);
    free(m->sizes);
    free(m->present);
}

static ct_status meeting_setup(struct meeting *m, ct_store *store, const char *what, int rank,
                               int size)
{
    *m = (struct meeting){ .store = store, .rank = rank, .size = size };
    m->text = calloc((size_t)size, sizeof *m->text);
    m->keys = calloc((size_t)size, sizeof *m->keys);
    m->values = calloc((size_t)size, sizeof *m->values);
    m->sizes = calloc((size_t)size, sizeof *m->sizes);
    m->present = calloc((size_t)size, sizeof *m->present);
    if (!m->text || !m->keys || !m->values || !m->sizes || !m->present)
        return ct_fail(CT_ERR_NOMEM, "no memory to meet %d ranks", size);
    for (int i = 0; i < size; i++) {
        snprintf(m->text[i], KEY_BYTES, "%s/%d", what, i);
        m->keys[i] = m->text[i];
    }
    return CT_OK;
}

/* "2, 5-7" */
static void list_missing(const struct meeting *m, char *text, size_t size)
{
    size_t used = 0;
    int first = -1;

    text[0] = 0;
    for (int i = 0; i <= m->size; i++) {
        const int present = i == m->size || m->present[i];

        if (!present && first < 0)
            first = i;
        if (present && first >= 0 && used < size) {
            used += (size_t)snprintf(text + used, size - used, "%s%d", used ? ", " : "", first);
            if (i - 1 > first && used < size)
                used += (size_t)snprintf(text + used, size - used, "-%d", i - 1);
            first = -1;
        }
    }
}

/* Of all ranks, rank 0 says who is missing; of those it waits for itself, rank 1 does. */
static ct_status warn_of_missing(const struct meeting *m, int64_t start)
{
    char missing[256];
    const ct_status status = store_check_each(m->store, m->keys, m->size, m->present);

    if (status != CT_OK)
        return status;
    list_missing(m, missing, sizeof missing);
    if (missing[0] && (m->rank == 0 || !m->present[0]))
        log_line(LOG_WARN, "waiting for %d ranks since %d s; missing: rank %s", m->size,
                 (int)((clock_ms() - start) / 1000), missing);
    return CT_OK;
}

/* A question for each rank that is missing is a question by each rank: whoever has nothing to say
 * asks nothing. */
static ct_status wait_for_all(const struct meeting *m, int64_t deadline)
{
    const int64_t start = clock_ms();
    const int warns = m->rank <= 1 && log_wants(LOG_WARN);
    char missing[256];
    ct_status status;

    status = ct_store_wait(m->store, m->keys, m->size,
                           time_left_ms(deadline, warns ? WARN_AFTER_MS : INT32_MAX));
    if (status == CT_ERR_TIMEOUT && warns && clock_ms() < deadline) {
        status = warn_of_missing(m, start);
        if (status == CT_OK)
            status = ct_store_wait(m->store, m->keys, m->size, time_left_ms(deadline, INT32_MAX));
    }
    if (status != CT_ERR_TIMEOUT)
        return status;
    status = store_check_each(m->store, m->keys, m->size, m->present);
    if (status != CT_OK)
        return status;
    list_missing(m, missing, sizeof missing);
    return ct_fail(CT_ERR_TIMEOUT,
                   "after %lld ms, of %d ranks these did not come: rank %s "
                   "(were they started, with the same MASTER_ADDR and MASTER_PORT?)",
                   (long long)(clock_ms() - start), m->size, missing[0] ? missing : "none");
}

ct_status meet(ct_store *store, const char *what, int rank, int size, const void *mine,
               size_t bytes, void *all, int64_t deadline)
{
    struct meeting m;
    ct_status status = meeting_setup(&m, store, what, rank, size);

    if (status == CT_OK)
        status = ct_store_set(store, m.keys[rank], mine, bytes);
    if (status == CT_OK)
        status = wait_for_all(&m, deadline);
    if (status == CT_OK)
        status = ct_store_multi_get(store, m.keys, size, time_left_ms(deadline, INT32_MAX),
                                    m.values, m.sizes);
    for (int i = 0; i < size && status == CT_OK; i++) {
        if (m.sizes[i] != bytes)
            status = ct_fail(CT_ERR_MISMATCH,
                             "rank %d speaks another version of libct (%zu bytes where %zu were "
                             "expected)",
                             i, m.sizes[i], bytes);
        else
            memcpy((char *)all + (size_t)i * bytes, m.values[i], bytes);
    }
    meeting_done(&m);
    return status;
}
