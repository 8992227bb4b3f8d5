/* SPDX-License-Identifier: Apache-2.0 */
/* group_device.c - waits for a device, and stores the results of peer-access checks.
 *
 * The results are a list with a set for each check that passed.  Any thread may add a set to the
 * front of the list.  No set is removed before the group is destroyed, since other threads read the
 * list without a lock. */
#include "runtime/group/group_device.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/messaging/messaging_internal.h"
#include "runtime/util/clock.h"

/* The longest time, in ms, that a wait asks only the device.  Then the wait checks whether the
 * group has failed. */
#define SLICE_MS 5

ct_status device_wait(ct_group *group, struct place place, void *mark, int64_t deadline,
                      const _Atomic int *given_up)
{
    const struct space *space = place.space;
    struct patience slice = { .given_up = given_up, .since_us = clock_us() };

    for (;;) {
        const int64_t soon = clock_ms() + SLICE_MS;
        ct_status status;

        slice.deadline = soon < deadline ? soon : deadline;
        status =
            mark ? space->wait_for(place.device, mark, slice) : space->finish(place.device, slice);
        if (status != CT_ERR_TIMEOUT || slice.deadline == deadline)
            return status;
        group_poll(group);
    }
}

/* Devices that passed a check.  Each device may read the memory of all devices of the set. */
struct access_set {
    struct access_set *next;
    int count;     /* number of devices */
    int one_reads; /* 1 if only ids[0] may read the memory of ids[1], not the reverse */
    unsigned char ids[][16];
};

/* Forgets which peers refused device memory, so that this rank offers it to them again. */
static void offer_again(ct_group *group)
{
    struct mesh *mesh = group->mesh;

    pthread_mutex_lock(&mesh->transport->lock);
    for (int i = 0; i < group->size; i++)
        endpoint_of(mesh, group->ranks[i])->device_rts_limits = 0;
    pthread_mutex_unlock(&mesh->transport->lock);
}

static struct access_set *access_set_make(int count)
{
    return calloc(1, sizeof(struct access_set)
                         + (size_t)count * sizeof((struct access_set *)NULL)->ids[0]);
}

static void access_set_add(ct_group *group, struct access_set *r)
{
    r->next = atomic_load(&group->on_device.peer_access);
    while (!atomic_compare_exchange_weak(&group->on_device.peer_access, &r->next, r))
        ;
}

void peer_access_add_all(ct_group *group, unsigned char (*ids)[16], int count)
{
    struct access_set *r = access_set_make(count);

    if (!r)
        return; /* then messages use host memory */
    r->count = count;
    memcpy(r->ids, ids, (size_t)count * sizeof r->ids[0]);
    access_set_add(group, r);
    offer_again(group);
}

void peer_access_add(ct_group *group, const unsigned char reader[16], const unsigned char owner[16])
{
    struct access_set *r = access_set_make(2);

    if (!r)
        return; /* then the next message runs the check again */
    r->count = 2;
    r->one_reads = 1;
    memcpy(r->ids[0], reader, sizeof r->ids[0]);
    memcpy(r->ids[1], owner, sizeof r->ids[1]);
    access_set_add(group, r);
}

static int access_set_has(const struct access_set *r, const unsigned char id[16])
{
    int i = 0;

    while (i < r->count && memcmp(r->ids[i], id, sizeof r->ids[0]))
        i++;
    return i < r->count;
}

static int access_set_covers(const struct access_set *r, const unsigned char reader[16],
                             const unsigned char owner[16])
{
    if (r->one_reads)
        return !memcmp(r->ids[0], reader, sizeof r->ids[0])
               && !memcmp(r->ids[1], owner, sizeof r->ids[1]);
    return access_set_has(r, reader) && access_set_has(r, owner);
}

int peer_access_checked(const ct_group *group, const unsigned char reader[16],
                        const unsigned char owner[16])
{
    const struct access_set *r = atomic_load(&group->on_device.peer_access);

    if (!memcmp(reader, owner, sizeof r->ids[0]))
        return 1;
    while (r && !access_set_covers(r, reader, owner))
        r = r->next;
    return r != NULL;
}

void peer_access_free(ct_group *group)
{
    struct access_set *r = atomic_load(&group->on_device.peer_access);

    while (r) {
        struct access_set *next = r->next;

        free(r);
        r = next;
    }
}
