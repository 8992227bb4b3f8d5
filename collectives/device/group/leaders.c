/* SPDX-License-Identifier: Apache-2.0 */
/* leaders.c - see leaders.h. */
#include "collectives/device/group/leaders.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/util/error.h"

static int find(const struct leaders *l, const unsigned char *id)
{
    int i = 0;

    while (i < l->count && memcmp(l->id[i], id, sizeof l->id[i]) != 0)
        i++;
    return i;
}

ct_status leaders_find(struct leaders *l, int rank, int size,
                       const unsigned char *(*id)(int rank, const void *arg), const void *arg)
{
    *l = (struct leaders){ .ranks = size,
                           .rank = calloc((size_t)size, sizeof *l->rank),
                           .of = calloc((size_t)size, sizeof *l->of),
                           .id = calloc((size_t)size, sizeof *l->id) };
    if (!l->rank || !l->of || !l->id) {
        leaders_free(l);
        return ct_fail(CT_ERR_NOMEM, "no memory to note the devices of %d ranks", size);
    }
    for (int i = 0; i < size; i++) {
        const int which = find(l, id(i, arg));

        if (which == l->count) {
            memcpy(l->id[which], id(i, arg), sizeof l->id[which]);
            l->rank[l->count++] = i;
        }
        l->of[i] = which;
    }
    l->mine = l->rank[l->of[rank]] == rank ? l->of[rank] : -1;
    return CT_OK;
}

void leaders_free(struct leaders *l)
{
    free(l->rank);
    free(l->of);
    free(l->id);
    *l = (struct leaders){ .mine = -1 };
}
