/* SPDX-License-Identifier: Apache-2.0 */
/* direct.c - buffers of a call that the other ranks read and write in place.
 *
 * Memory of ct_mem_alloc() lies in the file that the ranks of a host share (shared_region.h).  Each
 * rank publishes the offsets of its buffers in that file, as the payload of its line in a round.
 * The other ranks look up where they have mapped these parts of the file.
 *
 * A rank marks itself while it reads or writes buffers of other ranks.  A rank whose call has
 * failed must not return while another rank may still write to its buffers, which then belong to
 * the program again.  A rank that uses buffers first sets its mark, then checks whether the group
 * has failed.  A rank whose call fails first records the failure, then checks the marks.  So at
 * least one of these two ranks sees the other.
 *
 * Cost: no copy into a slot, but one more round, after which no rank uses buffers
 * of other ranks. */
#include "runtime/group/shm/direct.h"

#include <sched.h>
#include <stdlib.h>

#include "runtime/fault/fault_injection.h"
#include "runtime/group/shm/shm_group_internal.h"
#include "runtime/util/clock.h"

#define LONGEST_SETTLING_MS 200
#define BY_HOST 1
#define BY_DEVICE 2

enum { SEND, RECV };

/* Offsets of a rank's buffers in the host's shared file; 0 if the buffer does not lie there. */
struct direct_offer {
    uint64_t send, recv;
};

/* ---- Offers --------------------------------------------------------------------- */

void shm_group_offer(struct shm_group *f, const void *send, size_t send_bytes, void *recv,
                     size_t recv_bytes)
{
    struct region_offer *const own = f->own;
    struct direct_offer offer;

    shm_group_withdraw(f);
    own[SEND] = (struct region_offer){ .data = send, .bytes = send_bytes };
    own[RECV] = (struct region_offer){ .data = recv, .bytes = recv_bytes };
    regions_offer(&f->mesh->node, own, 2, f->members_here);
    offer = (struct direct_offer){ own[SEND].offset, own[RECV].offset };
    memcpy(shm_line(f, f->rank, f->round + 1)->payload, &offer, sizeof offer);
}

void shm_group_withdraw(struct shm_group *f)
{
    regions_withdraw(&f->mesh->node, f->own, 2);
}

int shm_group_offers(const struct shm_group *f, int send, int recv)
{
    const struct region_offer *own = f->own;

    return (!send || own[SEND].offset) && (!recv || own[RECV].offset);
}

static struct direct_offer direct_offer_of(const struct shm_group *f, int rank)
{
    struct direct_offer offer;

    memcpy(&offer, shm_line(f, rank, f->round)->payload, sizeof offer);
    return offer;
}

static ct_status direct_find(struct shm_group *f, int rank, size_t send_bytes, size_t recv_bytes)
{
    const struct node *node = &f->mesh->node;
    const struct direct_offer offer = direct_offer_of(f, rank);
    struct shm_peer *const peer = &f->peers[rank];
    char name[160];

    peer->send = send_bytes ? region_at(node, offer.send, send_bytes) : NULL;
    peer->recv = recv_bytes ? region_at(node, offer.recv, recv_bytes) : NULL;
    if ((send_bytes && !peer->send) || (recv_bytes && !peer->recv))
        return ct_fail(CT_ERR_INVALID, "the buffer of %s was given back by ct_mem_free() here",
                       mesh_peer_name(f->mesh, f->peers[rank].rank, name, sizeof name));
    return CT_OK;
}

ct_status shm_group_resolve_peers(struct shm_group *f, int from, size_t send_bytes,
                                  size_t recv_bytes, enum direct_access *reach)
{
    const int first = from < 0 ? 0 : from, end = from < 0 ? f->size : from + 1;
    ct_status status = CT_OK;
    int whole = 0, looking;

    for (int i = first; i < end; i++) {
        const struct direct_offer offer = direct_offer_of(f, i);

        whole += (!send_bytes || offer.send) && (!recv_bytes || offer.recv);
    }
    *reach = whole == 0 ? DIRECT_NONE : whole < end - first ? DIRECT_SOME : DIRECT_ALL;
    if (*reach != DIRECT_ALL)
        return CT_OK;
    looking = regions_look(&f->mesh->node);
    for (int i = first; i < end && status == CT_OK; i++)
        status = direct_find(f, i, send_bytes, recv_bytes);
    if (looking)
        regions_looked(&f->mesh->node);
    return status;
}

const char *shm_group_send_of(const struct shm_group *f, int rank)
{
    return f->peers[rank].send;
}

char *shm_group_recv_of(const struct shm_group *f, int rank)
{
    return f->peers[rank].recv;
}

/* ---- Marks ---------------------------------------------------------------------- */

static ct_status direct_touch(struct shm_group *f, int by)
{
    atomic_store(&f->members[f->rank].touching, by);
    if (!shm_has_failed(f)) {
        fault_pass(f->mesh->faults);
        return CT_OK;
    }
    shm_group_untouch(f);
    return ct_fail(CT_ERR_ABORTED, "the group is broken");
}

ct_status shm_group_touch(struct shm_group *f)
{
    return direct_touch(f, BY_HOST);
}

ct_status shm_group_touch_by_device(struct shm_group *f)
{
    return direct_touch(f, BY_DEVICE);
}

void shm_group_untouch(struct shm_group *f)
{
    atomic_store_explicit(&f->members[f->rank].touching, 0, memory_order_release);
}

ct_status shm_group_touch_in_stream(struct shm_group *f)
{
    atomic_fetch_add(&f->members[f->rank].in_streams, 1);
    if (!shm_has_failed(f))
        return CT_OK;
    shm_group_untouch_in_stream(f, 1);
    return ct_fail(CT_ERR_ABORTED, "the group is broken");
}

/* Subtracts at most what is left, since another thread may have taken back all calls meanwhile. */
void shm_group_untouch_in_stream(struct shm_group *f, int calls)
{
    _Atomic int *const in_streams = &f->members[f->rank].in_streams;
    int count = atomic_load(in_streams);

    while (!atomic_compare_exchange_weak(in_streams, &count, count < calls ? 0 : count - calls))
        ;
}

/* ---- After a failure ------------------------------------------------------------ */

/* Returns BY_HOST or BY_DEVICE, or 0 if the member does not use buffers of other members. */
static int direct_touching(const struct shm_member *member)
{
    const int by = atomic_load(&member->touching);

    return by || atomic_load(&member->in_streams) == 0 ? by : BY_DEVICE;
}

/* Waits until no other rank uses our buffers and returns 0.  Returns 1 if another rank's processor
 * still uses them after LONGEST_SETTLING_MS: that process may be stopped for ever, so the caller
 * must cut the buffers off.  A device's access can't be cut off, but a device does not stop, so
 * this waits up to SHM_GROUP_DEVICE_SETTLING_MS for it.  shm_wait_until() would not do here: it
 * ends when the group has failed or the call's deadline has passed. */
static int direct_await_untouched(struct shm_group *f)
{
    const int64_t begun = clock_ms();
    int by;

    for (int i = 0; i < f->size; i++)
        while (i != f->rank && (by = direct_touching(&f->members[i])) != 0
               && !shm_group_is_gone(f, i)) {
            if (by == BY_DEVICE && clock_ms() - begun >= SHM_GROUP_DEVICE_SETTLING_MS)
                break;
            if (by == BY_HOST && clock_ms() - begun >= LONGEST_SETTLING_MS)
                return 1;
            sched_yield();
        }
    return 0;
}

int shm_group_is_gone(const struct shm_group *f, int rank)
{
    return rank != f->rank && node_peer_gone(&f->mesh->node, f->peers[rank].local);
}

void shm_group_settle(struct shm_group *f)
{
    if (direct_await_untouched(f))
        regions_cut_off(&f->mesh->node, f->own, 2);
    shm_group_withdraw(f);
}
