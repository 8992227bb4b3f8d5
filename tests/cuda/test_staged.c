/* SPDX-License-Identifier: Apache-2.0 */
/* test_staged.c - calls on device memory that go through host memory: what that memory is, and that
 * nothing is read or written there before its copy is done.  That random calls give the right
 * results is collectives/test_properties.c's to show (ctest cuda/properties-staged). */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collectives/device_host.h"
#include "collectives/device_pieces.h"
#include "include/ct_cuda.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/region.h"
#include "tests/collectives/marks.h"
#include "tests/cuda/device.h"

enum { COUNT = 1000, PART = 100000, LIMIT_MS = 20000 };

/* Lines of the log that have the words. */
struct words {
    const char *words;
    int times;
};

static void count_line(void *arg, const char *line, size_t size)
{
    struct words *w = arg;

    w->times += memmem(line, size, w->words, strlen(w->words)) != NULL;
}

/* ---- The memory ------------------------------------------------------------------- */

/* A call of the group's in which its ranks may tell each other something. */
static struct call call_of(ct_group *group)
{
    struct call c = { .group = group, .deadline = deadline_after(LIMIT_MS) };

    EXPECT_OK(place_current(&c.place));
    c.signature.seq = ++group->seq;
    c.signature.operation = OPERATION_BARRIER;
    if (group->flat)
        flat_call(group->flat, &c.signature, c.deadline, &group->broken);
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
    regions_cut_off(node, members); /* another group's call failed: these pages stay */
    EXPECT(offset_of(group, memory.data) == offset);
    was = memory.data;
    EXPECT_OK(host_memory_drop(group, &memory, 0));
    EXPECT(!memory.data && !is_pinned(was));
    EXPECT(threads || !is_mapped(was)); /* of threads others may have it still */
}

static void host_memory_is_pinned_and_the_others_reach_it_until_it_is_dropped(void **state)
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

/* Of two groups, one after the other, each makes two calls; rank 1's driver does not let it pin the
 * first one's memory. */
static void one_cant_pin(ct_group *group, void *arg)
{
    struct words not_pinned = { "is not pinned: pinning ", 0 };
    const int me = ct_rank(group);
    int32_t here[COUNT], *there;

    (void)arg;
    if (me == 1)
        setenv("FAKE_CUDA_FAIL", "cuMemHostRegister:1", 1);
    if (!EXPECT(device_open(0)))
        return;
    there = device_alloc(sizeof here, 1);
    log_divert(count_line, &not_pinned);
    for (int i = 0; i < 2; i++) {
        ct_group *made;

        EXPECT_OK(ct_split_group(group, 0, me, &made));
        for (int j = 0; j < 2; j++)
            EXPECT_OK(ct_all_reduce(made, there, there, COUNT, CT_I32, CT_MAX, NULL));
        EXPECT_OK(ct_destroy_process_group(made));
    }
    log_divert(NULL, NULL);
    EXPECT(not_pinned.times == (me == 1));
    CU(device.cuMemcpyDtoH(here, at(there), sizeof here));
    EXPECT(here[0] == 0x01010101 && here[COUNT - 1] == 0x01010101);
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
}

static void memory_that_cant_be_pinned_is_used_all_the_same_and_said_once(void **state)
{
    (void)state;
    if (!device_is_fake())
        skip();
    setenv("CT_LOG", "info", 1);
    setenv("CT_DEVICE", "staged", 1);
    run_processes(3, one_cant_pin, NULL);
    unsetenv("CT_DEVICE");
    unsetenv("CT_LOG");
}

/* Calls in a stream that waits for them: to pin then, or to give back what is pinned, might be to
 * wait for that stream.  They need more each time, and another kind of memory. */
static void grows_in_stream(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    const size_t most = 300 * COUNT, half = most / 2 / sizeof(int32_t);
    const size_t counts[] = { 100, half, half };
    unsigned char *here = malloc(most);
    char *there, *all;
    CUstream stream;

    (void)arg;
    if (!EXPECT(device_open(0)) || !CU(device.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
        return;
    there = device_alloc(most, 0);
    all = device_alloc(most, 0);
    for (int round = 0; round < 2; round++) {
        EXPECT_OK(ct_set_stream(group, NULL)); /* this one waits, and nothing is held */
        EXPECT_OK(ct_all_reduce(group, there, there, 10, CT_I32, CT_MAX, NULL));
        EXPECT_OK(ct_set_stream(group, stream));
        for (int i = 0; i < 3; i++) {
            CU(device.cuMemsetD8Async(at(there), (unsigned char)(round + i + 1), most, stream));
            EXPECT_OK(ct_all_reduce(group, there, there, counts[i], CT_I32, CT_MAX, NULL));
            EXPECT_OK(ct_all_gather(group, there, all, counts[i] / (size_t)p, CT_I32, NULL));
        }
        CU(device.cuStreamSynchronize(stream));
        CU(device.cuMemcpyDtoH(here, at(all), most));
        EXPECT(here[0] == round + 3 && here[(half / (size_t)p * (size_t)p - 1) * 4] == round + 3);
    }
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
    device_free(all);
    CU(device.cuStreamDestroy(stream));
    free(here);
}

static void nothing_is_pinned_while_a_stream_waits_for_the_call(void **state)
{
    (void)state;
    setenv("CT_DEVICE", "staged", 1);
    run_processes(2, grows_in_stream, NULL);
    run_threads(2, grows_in_stream, NULL);
    unsetenv("CT_DEVICE");
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
        EXPECT(i == 0 || group->pinned.bytes > 0 || arg);
    }
    EXPECT(group->pinned.bytes <= 2 * (524288 + 131072));
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
        blocks[i] = pinned_take(&group->pinned, place, 16 * mib);
    EXPECT(blocks[0] && blocks[1] && blocks[2] && blocks[3] && !blocks[4]);
    for (int i = 0; i < 4; i++)
        pinned_give(&group->pinned, blocks[i]);
    blocks[0] = pinned_take(&group->pinned, place, mib); /* all are much too large */
    EXPECT(blocks[0] && blocks[0]->bytes == mib && group->pinned.bytes == 49 * mib);
    blocks[1] = pinned_take(&group->pinned, place, 10 * mib);
    EXPECT(blocks[1] && blocks[1]->bytes == 16 * mib && group->pinned.bytes == 49 * mib);
    EXPECT(!pinned_take(&group->pinned, place, 1000));
    pinned_give(&group->pinned, blocks[0]);
    pinned_give(&group->pinned, blocks[1]);
}

static void blocks_that_nobody_uses_make_room_for_others(void **state)
{
    (void)state;
    run_processes(1, pool_is_full, NULL);
}

/* ---- Pieces -------------------------------------------------------------------------- */

/* All pieces but the last are alike; what differs is the calls. */
static void other_count(ct_group *group, void *arg)
{
    const size_t count = ct_rank(group) == 1 ? COUNT : COUNT - 1;
    int32_t *there;

    (void)arg;
    if (!EXPECT(device_open(0)))
        return;
    there = device_alloc(COUNT * sizeof *there, 1);
    EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_MAX, NULL));
    EXPECT_ERROR(ct_all_reduce(group, there, there, count, CT_I32, CT_MAX, NULL), CT_ERR_MISMATCH,
                 "1000 i32|999 i32");
    mark("seen", ct_rank(group));
    for (int i = 0; i < ct_size(group); i++)
        await("seen", i);
    device_free(there);
}

static void ranks_with_other_counts_are_told_in_the_first_piece(void **state)
{
    const struct piece_sizes sizes = piece_sizes;

    (void)state;
    setenv("CT_DEVICE", "staged", 1);
    piece_sizes = (struct piece_sizes){ 512, 512 };
    run_processes(2, other_count, NULL);
    use_link("tcp");
    run_processes(2, other_count, NULL);
    use_link(NULL);
    piece_sizes = sizes;
    unsetenv("CT_DEVICE");
}

/* Rank 1's device begins all that it is told so late that whoever does not wait is seen to. */
static void late_pieces(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    int32_t here[COUNT], *there;

    if (!arg && me == 1)
        setenv("FAKE_CUDA_LAG_RANK", "all", 1);
    if (!EXPECT(device_open(0)))
        return;
    for (int i = 0; i < COUNT; i++)
        here[i] = i * (me + 1);
    there = device_alloc(sizeof here, 0);
    CU(device_put(at(there), here, sizeof here));
    EXPECT_OK(ct_all_reduce(group, there, there, COUNT, CT_I32, CT_SUM, NULL));
    CU(device.cuMemcpyDtoH(here, at(there), sizeof here));
    for (int i = 0; i < COUNT; i++)
        if (!EXPECT(here[i] == i * p * (p + 1) / 2))
            break;
    EXPECT(!strcmp(ct_last_algorithm(group), "staged"));
    EXPECT_OK(ct_barrier(group, NULL));
    device_free(there);
}

static void pieces_of_a_device_that_is_late_are_waited_for(void **state)
{
    const struct piece_sizes sizes = piece_sizes;

    (void)state;
    if (!device_is_fake())
        skip();
    setenv("CT_DEVICE", "staged", 1);
    setenv("FAKE_CUDA_LAG_US", "1000", 1);
    piece_sizes = (struct piece_sizes){ 256, 256 };
    run_processes(3, late_pieces, NULL);
    setenv("FAKE_CUDA_LAG_RANK", "all", 1); /* threads have one environment, and one driver */
    run_threads(2, late_pieces, "all");
    unsetenv("FAKE_CUDA_LAG_RANK");
    use_link("tcp");
    run_processes(2, late_pieces, NULL);
    use_link(NULL);
    piece_sizes = sizes;
    unsetenv("FAKE_CUDA_LAG_US");
    unsetenv("CT_DEVICE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_memory_is_pinned_and_the_others_reach_it_until_it_is_dropped),
        cmocka_unit_test(ranks_of_several_hosts_have_pinned_memory_of_their_own),
        cmocka_unit_test(memory_that_cant_be_pinned_is_used_all_the_same_and_said_once),
        cmocka_unit_test(nothing_is_pinned_while_a_stream_waits_for_the_call),
        cmocka_unit_test(messages_go_through_pinned_memory_that_is_used_again),
        cmocka_unit_test(blocks_that_nobody_uses_make_room_for_others),
        cmocka_unit_test(ranks_with_other_counts_are_told_in_the_first_piece),
        cmocka_unit_test(pieces_of_a_device_that_is_late_are_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
