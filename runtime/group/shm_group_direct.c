/* SPDX-License-Identifier: Apache-2.0 */
/* shm_group_direct.c - buffers in memory of ct_mem_alloc(), which the others reach where they are.
 *
 * Each rank says in the line of a round where its buffers lie, as offsets in the file that the
 * host's ranks share.  Who is at the buffers of others says that too: a rank whose call has failed
 * must not return while somebody may still write to what its program takes for its own again. */
#include "runtime/group/shm_group_internal.h"

#include <sched.h>
#include <string.h>

#include "runtime/util/clock.h"

#define LONGEST_SETTLING_MS 200
#define BY_HOST 1
#define BY_DEVICE 2

enum { SEND, RECV };

void flat_offer(struct flat *f, const void *send, size_t send_bytes, void *recv, size_t recv_bytes)
{
    struct offer offer;

    flat_withdraw(f);
    f->own[SEND] = (struct region_offer){ .data = send, .bytes = send_bytes };
    f->own[RECV] = (struct region_offer){ .data = recv, .bytes = recv_bytes };
    regions_offer(&f->mesh->node, f->own, 2, f->members_here);
    offer = (struct offer){ f->own[SEND].offset, f->own[RECV].offset };
    memcpy(f->members[f->rank].lines[(f->round + 1) % 2].payload, &offer, sizeof offer);
}

void flat_withdraw(struct flat *f)
{
    regions_withdraw(&f->mesh->node, f->own, 2);
}

int flat_offers(const struct flat *f, int send, int recv)
{
    return (!send || f->own[SEND].offset) && (!recv || f->own[RECV].offset);
}

/* Of a send and a recv buffer those that matter. */
static int is_whole(const struct offer *offer, int send, int recv)
{
    return (!send || offer->send) && (!recv || offer->recv);
}

static struct offer offer_of(const struct flat *f, int rank)
{
    struct offer offer;

    memcpy(&offer, f->members[rank].lines[f->round % 2].payload, sizeof offer);
    return offer;
}

static ct_status find(struct flat *f, int rank, size_t send_bytes, size_t recv_bytes)
{
    const struct node *node = &f->mesh->node;
    const struct offer offer = offer_of(f, rank);
    char name[160];

    f->reached[rank].send = send_bytes ? region_at(node, offer.send, send_bytes) : NULL;
    f->reached[rank].recv = recv_bytes ? region_at(node, offer.recv, recv_bytes) : NULL;
    if ((send_bytes && !f->reached[rank].send) || (recv_bytes && !f->reached[rank].recv))
        return ct_fail(CT_ERR_INVALID, "the buffer of %s was given back by ct_mem_free() here",
                       mesh_peer_name(f->mesh, f->ranks[rank], name, sizeof name));
    return CT_OK;
}

ct_status flat_look_up(struct flat *f, int from, size_t send_bytes, size_t recv_bytes,
                       enum reach *reach)
{
    const int first = from < 0 ? 0 : from, end = from < 0 ? f->size : from + 1;
    ct_status status = CT_OK;
    int whole = 0, looking;

    for (int i = first; i < end; i++) {
        const struct offer offer = offer_of(f, i);

        whole += is_whole(&offer, send_bytes > 0, recv_bytes > 0);
    }
    *reach = whole == 0 ? REACH_NONE : whole < end - first ? REACH_SOME : REACH_ALL;
    if (*reach != REACH_ALL)
        return CT_OK;
    looking = regions_look(&f->mesh->node);
    for (int i = first; i < end && status == CT_OK; i++)
        status = find(f, i, send_bytes, recv_bytes);
    if (looking)
        regions_looked(&f->mesh->node);
    return status;
}

const char *flat_send_of(const struct flat *f, int rank)
{
    return f->reached[rank].send;
}

char *flat_recv_of(const struct flat *f, int rank)
{
    return f->reached[rank].recv;
}

/* Says that we are there, then looks whether somebody has given up; who gives up says so, then
 * looks who is there. */
static ct_status touch(struct flat *f, int by)
{
    atomic_store(&f->members[f->rank].touching, by);
    if (!flat_is_broken(f)) {
        fault_pass(f->mesh->faults);
        return CT_OK;
    }
    flat_untouch(f);
    return ct_fail(CT_ERR_ABORTED, "the group is broken");
}

ct_status flat_touch(struct flat *f)
{
    return touch(f, BY_HOST);
}

ct_status flat_touch_by_device(struct flat *f)
{
    return touch(f, BY_DEVICE);
}

void flat_untouch(struct flat *f)
{
    atomic_store_explicit(&f->members[f->rank].touching, 0, memory_order_release);
}

ct_status flat_touch_in_stream(struct flat *f)
{
    atomic_fetch_add(&f->members[f->rank].in_streams, 1);
    if (!flat_is_broken(f))
        return CT_OK;
    flat_untouch_in_stream(f);
    return ct_fail(CT_ERR_ABORTED, "the group is broken");
}

void flat_untouch_in_stream(struct flat *f)
{
    atomic_fetch_sub_explicit(&f->members[f->rank].in_streams, 1, memory_order_release);
}

/* 0: is not at the others' buffers. */
static int touching(const struct member *member)
{
    const int by = atomic_load(&member->touching);

    return by || atomic_load(&member->in_streams) == 0 ? by : BY_DEVICE;
}

/* A process that was stopped there stays there: what it might still write to is cut off.  What a
 * device might can't be; it is waited for, since it is at work and not stopped. */
/* 1: another rank's processor is at them still, however long that takes. */
static int await_untouched(struct flat *f)
{
    const int64_t begun = clock_ms();
    int by;

    for (int i = 0; i < f->size; i++)
        while (i != f->rank && (by = touching(&f->members[i])) != 0
               && !node_peer_gone(&f->mesh->node, f->locals[i])) {
            if (by == BY_DEVICE && clock_ms() - begun >= FLAT_DEVICE_SETTLING_MS)
                return 0;
            if (by == BY_HOST && clock_ms() - begun >= LONGEST_SETTLING_MS)
                return 1;
            sched_yield();
        }
    return 0;
}

void flat_await_untouched(struct flat *f)
{
    await_untouched(f);
}

void flat_settle(struct flat *f)
{
    if (await_untouched(f))
        regions_cut_off(&f->mesh->node, f->own, 2);
    flat_withdraw(f);
}
