/* SPDX-License-Identifier: Apache-2.0 */
/* store_all_gather.c - an all-gather over the store, for ranks that have no links yet. */
#include "runtime/bootstrap/store_all_gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/store/store.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define KEY_BYTES 64
#define WARN_AFTER_MS 5000

struct all_gather {
    ct_store *store;
    int rank, size;
    char (*text)[KEY_BYTES];
    const char **keys;
    void **values;
    size_t *sizes;
    char *present; /* [size] at the last check */
};

static void all_gather_free(struct all_gather *g)
{
    for (int i = 0; g->values && i < g->size; i++)
        free(g->values[i]);
    free(g->text);
    free(g->keys);
    free(g->values);
    free(g->sizes);
    free(g->present);
}

static ct_status all_gather_setup(struct all_gather *g, ct_store *store, const char *what, int rank,
                                  int size)
{
    *g = (struct all_gather){ .store = store, .rank = rank, .size = size };
    g->text = calloc((size_t)size, sizeof *g->text);
    g->keys = calloc((size_t)size, sizeof *g->keys);
    g->values = calloc((size_t)size, sizeof *g->values);
    g->sizes = calloc((size_t)size, sizeof *g->sizes);
    g->present = calloc((size_t)size, sizeof *g->present);
    if (!g->text || !g->keys || !g->values || !g->sizes || !g->present)
        return ct_fail(CT_ERR_NOMEM, "no memory for %d ranks", size);
    for (int i = 0; i < size; i++) {
        snprintf(g->text[i], KEY_BYTES, "%s/%d", what, i);
        g->keys[i] = g->text[i];
    }
    return CT_OK;
}

/* "2, 5-7" */
static void list_missing(const struct all_gather *g, char *text, size_t size)
{
    size_t used = 0;
    int first = -1;

    text[0] = 0;
    for (int i = 0; i <= g->size; i++) {
        const int present = i == g->size || g->present[i];

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

/* Rank 0 warns; rank 1 does if rank 0 is missing. */
static ct_status warn_of_missing(const struct all_gather *g, int64_t start)
{
    char missing[256];
    const ct_status status = store_check_each(g->store, g->keys, g->size, g->present);

    if (status != CT_OK)
        return status;
    list_missing(g, missing, sizeof missing);
    if (missing[0] && (g->rank == 0 || !g->present[0]))
        log_line(LOG_WARN, "waiting for %d ranks since %d s; missing: rank %s", g->size,
                 (int)((clock_ms() - start) / 1000), missing);
    return CT_OK;
}

/* Only the ranks that warn check which ranks are missing: a check by each rank would load the
 * store. */
static ct_status wait_for_all(const struct all_gather *g, int64_t deadline)
{
    const int64_t start = clock_ms();
    const int warns = g->rank <= 1 && log_wants(LOG_WARN);
    char missing[256];
    ct_status status;

    status = ct_store_wait(g->store, g->keys, g->size,
                           time_left_ms(deadline, warns ? WARN_AFTER_MS : INT32_MAX));
    if (status == CT_ERR_TIMEOUT && warns && clock_ms() < deadline) {
        status = warn_of_missing(g, start);
        if (status == CT_OK)
            status = ct_store_wait(g->store, g->keys, g->size, time_left_ms(deadline, INT32_MAX));
    }
    if (status != CT_ERR_TIMEOUT)
        return status;
    status = store_check_each(g->store, g->keys, g->size, g->present);
    if (status != CT_OK)
        return status;
    list_missing(g, missing, sizeof missing);
    return ct_fail(CT_ERR_TIMEOUT,
                   "after %lld ms, of %d ranks these did not come: rank %s "
                   "(were they started, with the same MASTER_ADDR and MASTER_PORT?)",
                   (long long)(clock_ms() - start), g->size, missing[0] ? missing : "none");
}

ct_status store_all_gather(ct_store *store, const char *what, int rank, int size, const void *own,
                           size_t bytes, void *all, int64_t deadline)
{
    struct all_gather g;
    ct_status status = all_gather_setup(&g, store, what, rank, size);

    if (status == CT_OK)
        status = ct_store_set(store, g.keys[rank], own, bytes);
    if (status == CT_OK)
        status = wait_for_all(&g, deadline);
    if (status == CT_OK)
        status = ct_store_multi_get(store, g.keys, size, time_left_ms(deadline, INT32_MAX),
                                    g.values, g.sizes);
    for (int i = 0; i < size && status == CT_OK; i++) {
        if (g.sizes[i] != bytes)
            status = ct_fail(CT_ERR_MISMATCH,
                             "rank %d speaks another version of libct (%zu bytes where %zu were "
                             "expected)",
                             i, g.sizes[i], bytes);
        else
            memcpy((char *)all + (size_t)i * bytes, g.values[i], bytes);
    }
    all_gather_free(&g);
    return status;
}
