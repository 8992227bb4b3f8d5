/* SPDX-License-Identifier: Apache-2.0 */
/* group_device.c - see group_device.h.  A set for each proof, added at the front by any
 * thread and kept until the group ends, since messages of other threads look at them. */
#include "runtime/group/group_device.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/messaging/death_notice.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/util/clock.h"

#define SLICE_MS 5 /* between two looks at the group */

ct_status device_wait(ct_group *group, struct place place, void *mark, int64_t deadline,
                      const _Atomic int *given_up)
{
    const struct space *space = place.space;

    for (;;) {
        const int64_t soon = clock_ms() + SLICE_MS, until = soon < deadline ? soon : deadline;
        const ct_status status = mark ? space->wait_for(place.device, mark, until, given_up)
                                      : space->finish(place.device, until, given_up);

        if (status != CT_ERR_TIMEOUT || until == deadline)
            return status;
        mesh_look_for_deaths(group->mesh);
        messages_look(group->mesh);
        group_look_for_failure(group);
    }
}

struct reached {
    struct reached *next;
    int count;
    int one_reads; /* the first the second, and no more is known of the two */
    unsigned char ids[][16];
};

static void lend_again(ct_group *group)
{
    struct mesh *mesh = group->mesh;

    pthread_mutex_lock(&mesh->transport->lock);
    for (int i = 0; i < group->size; i++)
        mesh->transport->wires[group->ranks[i]].device_rts_limits = 0;
    pthread_mutex_unlock(&mesh->transport->lock);
}

static struct reached *make(int count)
{
    return calloc(1,
                  sizeof(struct reached) + (size_t)count * sizeof((struct reached *)NULL)->ids[0]);
}

static void add(ct_group *group, struct reached *r)
{
    r->next = atomic_load(&group->reached);
    while (!atomic_compare_exchange_weak(&group->reached, &r->next, r))
        ;
}

void reach_proved(ct_group *group, unsigned char (*ids)[16], int count)
{
    struct reached *r = make(count);

    if (!r)
        return; /* messages take the longer way */
    r->count = count;
    memcpy(r->ids, ids, (size_t)count * sizeof r->ids[0]);
    add(group, r);
    lend_again(group);
}

void reach_proved_to_read(ct_group *group, const unsigned char reader[16],
                          const unsigned char owner[16])
{
    struct reached *r = make(2);

    if (!r)
        return; /* it is tried again */
    r->count = 2;
    r->one_reads = 1;
    memcpy(r->ids[0], reader, sizeof r->ids[0]);
    memcpy(r->ids[1], owner, sizeof r->ids[1]);
    add(group, r);
}

static int has(const struct reached *r, const unsigned char id[16])
{
    int i = 0;

    while (i < r->count && memcmp(r->ids[i], id, sizeof r->ids[0]))
        i++;
    return i < r->count;
}

static int says(const struct reached *r, const unsigned char reader[16],
                const unsigned char owner[16])
{
    if (r->one_reads)
        return !memcmp(r->ids[0], reader, sizeof r->ids[0])
               && !memcmp(r->ids[1], owner, sizeof r->ids[1]);
    return has(r, reader) && has(r, owner);
}

int reads_as_proved(const ct_group *group, const unsigned char reader[16],
                    const unsigned char owner[16])
{
    const struct reached *r = atomic_load(&group->reached);

    if (!memcmp(reader, owner, sizeof r->ids[0]))
        return 1;
    while (r && !says(r, reader, owner))
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
