/* SPDX-License-Identifier: Apache-2.0 */
/* test_staged_memory.c - the host memory that calls and messages on device memory go through: the
 * ranks that map it, that it is pinned, and when it is used again or freed. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>
#include <sys/mman.h>

#include "collectives/device/staged/staging_memory.h"
#include "runtime/shm/shared_region.h"
#include "runtime/util/clock.h"
#include "tests/cuda/device.h"

enum { PART = 100000, LIMIT_MS = 20000 };

/* A call of the group's in which its ranks may tell each other something. */
static struct call call_of(ct_group *group)
{
    struct call c = { .group = group, .deadline = deadline_after(LIMIT_MS) };

    EXPECT_OK(place_current(&c.place));
    c.signature.seq = ++group->seq;
    c.signature.operation = OPERATION_BARRIER;
    if (group->shm)
        shm_group_begin_call(group->shm, &c.signature, c.deadline, &group->failure.status);
    return c;
}

static int is_pinned(const void *memory)
{
    unsigned kind = 0;

    return device.cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at(memory))
               == CUDA_SUCCESS
           && kind == CU_MEMORYTYPE_HOST;
}

static int is_mapped(const char *memory)
{
    unsigned char there;

    return mincore((void *)(uintptr_t)memory, 1, &there) == 0;
}

static void all_here(const ct_group *group, uint64_t *members)
{
    for (int i = 0; i < group->size; i++)
        node_set_add(members, i == group->rank ? group->mesh->node.rank
                                               : group->mesh->peers[group->ranks[i]].local);
}

static uint64_t offset_of(const ct_group *group, const char *memory)
{
    struct node *const node = &group->mesh->node;
    uint64_t members[NODE_SET_WORDS] = { 0 }, offset;

    all_here(group, members);
    regions_look(node);
    offset = region_find(node, memory, PART, members);
    regions_looked(node);
    return offset;
}

/* Rank r writes r into its own part, by its device, and finds r + 1 in the next rank's. */
static void memory_is_reached(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group), next = (me + 1) % p;
    struct node *const node = &group->mesh->node;
    struct host_memory memory = { 0 };
    struct call c;
    struct region_offer offer = { .bytes = PART };
    uint64_t offset, offsets[MAX_RANKS], members[NODE_SET_WORDS] = { 0 };
    void *there;
    const char *its;
    const int threads = arg != NULL;
    char *was;
    int cant = 0;

    if (!EXPECT(device_open(0)))
        return;
    c = call_of(group);
    if (!EXPECT_OK(host_memory_make(&c, &memory, PART, 1)))
        return;
    host_memory_pin(&c, &memory, &cant);
    EXPECT(!cant && memory.bytes >= PART && is_pinned(memory.data));
    there = device_alloc(PART, (unsigned char)me);
    CU(device.cuMemcpyDtoH(memory.data, at(there), PART));
    device_free(there);
    offset = offset_of(group, memory.data);
    EXPECT(offset != 0);
    EXPECT_OK(ct_all_gather(group, &offset, offsets, 1, CT_U64, NULL));
    regions_look(node);
    its = region_at(node, offsets[next], PART);
    regions_looked(node);
    EXPECT(its && its[0] == next && its[PART - 1] == next);
    EXPECT_OK(ct_barrier(group, NULL));
    all_here(group, members);
    offer.data = memory.data;
    regions_offer(node, &offer, 1, members);
    EXPECT(offer.offset == offset);
    regions_cut_off(node, &offer, 1); /* its call failed: these pages stay all the same */
    EXPECT(offset_of(group, memory.data) == offset && offer.offset == 0);
    was = memory.data;
    EXPECT_OK(host_memory_drop(group, &memory, 0));
    EXPECT(!memory.data && !is_pinned(was));
    EXPECT(threads || !is_mapped(was)); /* of threads others may have it still */
}

static void host_memory_is_pinned_and_mapped_by_the_others_until_it_is_dropped(void **state)
{
    (void)state;
    run_processes(2, memory_is_reached, NULL);
    run_processes(4, memory_is_reached, NULL);
    if (device_is_fake()) /* a real driver sees one process, whose ranks share pages */
        run_threads(3, memory_is_reached, "threads");
}

static void memory_is_ones_own(ct_group *group, void *arg)
{
    struct host_memory memory = { 0 };
    struct call c;
    int cant = 0;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    c = call_of(group);
    EXPECT_OK(host_memory_make(&c, &memory, PART, 1));
    host_memory_pin(&c, &memory, &cant);
    EXPECT(!cant && is_pinned(memory.data) && offset_of(group, memory.data) == 0);
    EXPECT_OK(host_memory_drop(group, &memory, 0));
    EXPECT_OK(ct_barrier(group, NULL));
}

static void ranks_of_several_hosts_have_pinned_memory_of_their_own(void **state)
{
    (void)state;
    use_link("tcp");
    run_processes(2, memory_is_ones_own, NULL);
    use_link(NULL);
}

/* ---- Messages ------------------------------------------------------------------------ */

/* Both ways at once; what is pinned is used again, and not more of it than is in use at a time. */
static void messages(ct_group *group, void *arg)
{
    const size_t sizes[] = { 1000, 300000, 300000, 290000, 70000, 300000 };
    const int me = ct_rank(group), other = 1 - me;
    unsigned char *here = malloc(300000);
    void *out, *in;
    ct_work *work;

    if (arg && me == 0)
        setenv("FAKE_CUDA_FAIL", arg, 1);
    if (!EXPECT(device_open(0)))
        return;
    out = device_alloc(300000, 0);
    in = device_alloc(300000, 0);
    for (int i = 0; i < 6; i++) {
        const unsigned char sent = (unsigned char)(10 * i + me + 1);

        CU(device.cuMemsetD8Async(at(out), sent, sizes[i], NULL));
        EXPECT_OK(ct_irecv(group, in, sizes[i], CT_U8, other, 0, &work));
        EXPECT_OK(ct_send(group, out, sizes[i], CT_U8, other, 0));
        EXPECT_OK(ct_wait(work));
        CU(device.cuMemcpyDtoH(here, at(in), sizes[i]));
        EXPECT(here[0] == 10 * i + other + 1 && here[sizes[i] - 1] == here[0]);
        EXPECT(i == 0 || group->on_device.pinned.bytes > 0 || arg);
    }
    EXPECT(group->on_device.pinned.bytes <= 2 * (524288 + 131072));
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(out);
    device_free(in);
    free(here);
}

static void messages_go_through_pinned_memory_that_is_used_again(void **state)
{
    (void)state;
    run_processes(2, messages, NULL);
    run_threads(2, messages, NULL);
    if (device_is_fake())
        run_processes(2, messages, (void *)(uintptr_t) "cuMemHostRegister:1");
}

static void pool_is_full(ct_group *group, void *arg)
{
    const size_t mib = (size_t)1 << 20;
    struct pinned_block *blocks[5];
    struct place place;

    (void)arg;
    if (!EXPECT(device_open(0)) || !EXPECT_OK(place_current(&place)))
        return;
    for (int i = 0; i < 5; i++)
        blocks[i] = pinned_take(&group->on_device.pinned, place, 16 * mib);
    EXPECT(blocks[0] && blocks[1] && blocks[2] && blocks[3] && !blocks[4]);
    for (int i = 0; i < 4; i++)
        pinned_give(&group->on_device.pinned, blocks[i]);
    blocks[0] = pinned_take(&group->on_device.pinned, place, mib); /* all are much too large */
    EXPECT(blocks[0] && blocks[0]->bytes == mib && group->on_device.pinned.bytes == 49 * mib);
    blocks[1] = pinned_take(&group->on_device.pinned, place, 10 * mib);
    EXPECT(blocks[1] && blocks[1]->bytes == 16 * mib && group->on_device.pinned.bytes == 49 * mib);
    EXPECT(!pinned_take(&group->on_device.pinned, place, 1000));
    pinned_give(&group->on_device.pinned, blocks[0]);
    pinned_give(&group->on_device.pinned, blocks[1]);
}

static void blocks_that_no_call_uses_make_room_for_others(void **state)
{
    (void)state;
    run_processes(1, pool_is_full, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_memory_is_pinned_and_mapped_by_the_others_until_it_is_dropped),
        cmocka_unit_test(ranks_of_several_hosts_have_pinned_memory_of_their_own),
        cmocka_unit_test(messages_go_through_pinned_memory_that_is_used_again),
        cmocka_unit_test(blocks_that_no_call_uses_make_room_for_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
