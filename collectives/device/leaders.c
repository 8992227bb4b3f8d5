/* SPDX-License-Identifier: Apache-2.0 */
/* leaders.c - see leaders.h. */
#include "collectives/device/leaders.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/util/error.h"

static int find(const struct executors *e, const unsigned char *id)
{
    int i = 0;

    while (i < e->count && memcmp(e->id[i], id, sizeof e->id[i]) != 0)
        i++;
    return i;
}

static ct_status make(struct executors *e, int rank, int size,
                      const unsigned char *(*id)(int rank, const void *arg), const void *arg)
{
    e->ranks = size;
    e->rank = calloc((size_t)size, sizeof *e->rank);
    e->of = calloc((size_t)size, sizeof *e->of);
    e->place = calloc((size_t)size, sizeof *e->place);
    e->has = calloc((size_t)size, sizeof *e->has);
    e->id = calloc((size_t)size, sizeof *e->id);
    if (!e->rank || !e->of || !e->place || !e->has || !e->id) {
        executors_free(e);
        return ct_fail(CT_ERR_NOMEM, "no memory to note the devices of %d ranks", size);
    }
    for (int i = 0; i < size; i++) {
        const int which = find(e, id(i, arg));

        if (which == e->count) {
            memcpy(e->id[which], id(i, arg), sizeof e->id[which]);
            e->rank[e->count++] = i;
        }
        e->of[i] = which;
        e->place[i] = e->has[which]++;
        if (e->has[which] > e->most)
            e->most = e->has[which];
    }
    e->mine = e->rank[e->of[rank]] == rank ? e->of[rank] : -1;
    return CT_OK;
}

static int are_same(const struct executors *a, const struct executors *b, int size)
{
    return a->count == b->count && !memcmp(a->of, b->of, (size_t)size * sizeof *a->of)
           && !memcmp(a->id, b->id, (size_t)a->count * sizeof *a->id);
}

/* What was proved of the same devices need not be proved again. */
ct_status executors_find(struct executors *e, int rank, int size,
                         const unsigned char *(*id)(int rank, const void *arg), const void *arg)
{
    struct executors found = { .mine = -1 };
    const ct_status status = make(&found, rank, size, id, arg);

    if (status != CT_OK)
        return status;
    if (are_same(&found, e, size))
        found.proof = e->proof;
    executors_free(e);
    *e = found;
    return CT_OK;
}

void executors_free(struct executors *e)
{
    free(e->rank);
    free(e->of);
    free(e->place);
    free(e->has);
    free(e->id);
    *e = (struct executors){ .mine = -1 };
}
