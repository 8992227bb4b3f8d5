/* SPDX-License-Identifier: Apache-2.0 */
/* reach.c - see reach.h.  A set for each proof, kept until the group ends, since messages of other
 * threads look at them. */
#include "runtime/reach.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/messages.h"

struct reached {
    struct reached *next;
    int count;
    unsigned char ids[][16];
};

static void lend_again(ct_group *group)
{
    struct messages *m = group->mesh->messages;

    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < group->size; i++)
        m->wires[group->ranks[i]].no_loans = 0;
    pthread_mutex_unlock(&m->lock);
}

/* One call of the group's at a time. */
void reach_proved(ct_group *group, unsigned char (*ids)[16], int count)
{
    struct reached *r = malloc(sizeof *r + (size_t)count * sizeof r->ids[0]);

    if (!r)
        return; /* messages take the longer way */
    r->next = atomic_load(&group->reached);
    r->count = count;
    memcpy(r->ids, ids, (size_t)count * sizeof r->ids[0]);
    atomic_store(&group->reached, r);
    lend_again(group);
}

static int has(const struct reached *r, const unsigned char id[16])
{
    int i = 0;

    while (i < r->count && memcmp(r->ids[i], id, sizeof r->ids[0]))
        i++;
    return i < r->count;
}

int reach_is_proved(const ct_group *group, const unsigned char one[16],
                    const unsigned char other[16])
{
    const struct reached *r = atomic_load(&group->reached);

    if (!memcmp(one, other, sizeof r->ids[0]))
        return 1;
    while (r && !(has(r, one) && has(r, other)))
        r = r->next;
    return r != NULL;
}

void reach_free(ct_group *group)
{
    struct reached *r = atomic_load(&group->reached);

    while (r) {
        struct reached *next = r->next;

        free(r);
        r = next;
    }
}
