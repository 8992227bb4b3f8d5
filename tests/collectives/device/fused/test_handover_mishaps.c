/* SPDX-License-Identifier: Apache-2.0 */
/* test_handover_mishaps.c - calls that streams hand over, in whole or in a graph, when the driver
 * refuses, or a call fails on one rank: which rank says what, and no stream waits for ever.
 *
 * Runs against tests/fake/, where streams run late: what it proves is proved of the fake driver. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "include/ct_cuda.h"
#include "runtime/util/log.h"
#include "tests/marks.h"
#include "tests/cuda/streams.h"

enum { LIMIT_MS = 3000, LONG_MS = 20000 };

static ct_status sum(const struct scene *s, ct_group *group)
{
    return ct_all_reduce(group, s->send, s->recv, COUNT, CT_I32, CT_SUM, NULL);
}

/* ---- A graph ------------------------------------------------------------------------------ */

static void launch_after_a_failure(ct_group *group, void *arg)
{
    CUgraphExec launched;
    struct scene s;
    CUgraph graph;

    (void)arg;
    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    CU(device.cuStreamBeginCapture(s.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_OK(sum(&s, group));
    CU(device.cuStreamEndCapture(s.stream, &graph));
    CU(device.cuGraphInstantiate(&launched, graph, 0));
    EXPECT_OK(ct_set_stream(group, NULL));
    if (ct_rank(group) == 0) {
        EXPECT_OK(ct_set_next_timeout(group, LIMIT_MS));
        EXPECT_STATUS(sum(&s, group), CT_ERR_TIMEOUT);
    }
    all_marked(group, "failed");
    fill(&s, 1);
    CU(device.cuGraphLaunch(launched, s.stream));
    look(&s, s.recv);
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT(all_seen_are(&s, 2 * 0x01010101));
    all_marked(group, "launched");
    CU(device.cuGraphExecDestroy(launched));
    CU(device.cuGraphDestroy(graph));
    tear_down(&s);
}

/* What it works on stays mapped. */
static void a_graph_can_be_launched_after_another_call_has_failed(void **state)
{
    (void)state;
    run_processes(2, launch_after_a_failure, NULL);
}

/* ---- The driver refuses ------------------------------------------------------------------- */

/* The driver of which rank refuses which of its lists of words; two are tries, of each group one.
 */
struct refused {
    int rank;
    const char *list, *name;
};

struct said {
    int failed, stands_still;
};

static void hear(void *arg, const char *line, size_t size)
{
    static const char failed[] = "in its stream: ",
                      still[] = "a stream is still blocked before a call of the group";
    struct said *said = arg;

    said->failed += memmem(line, size, failed, sizeof failed - 1) != NULL;
    said->stands_still += memmem(line, size, still, sizeof still - 1) != NULL;
}

/* The other rank's call may be made before that rank hears of the failure, or not. */
static void make_refused_call(const struct scene *s, ct_group *part, int is_refused, int rank)
{
    struct said said = { 0 };
    char words[64];
    ct_status status;

    snprintf(words, sizeof words, "on rank %d|all_reduce #2|letting a stream wait for flags", rank);
    log_divert(hear, &said);
    status = sum(s, part);
    EXPECT(is_refused ? status == CT_ERR_CUDA : status == CT_OK || status == CT_ERR_PEER);
    CU(device.cuStreamSynchronize(s->stream));
    if (is_refused)
        EXPECT_STATUS(ct_barrier(part, NULL), CT_ERR_CUDA);
    else
        EXPECT_ERROR(ct_barrier(part, NULL), CT_ERR_PEER, words);
    EXPECT_OK(ct_destroy_process_group(part));
    log_divert(NULL, NULL);
    if (!is_refused && status == CT_OK)
        EXPECT(said.failed == 1);
    EXPECT(said.stands_still == 0);
}

static void driver_refuses(ct_group *group, void *arg)
{
    const struct refused *refused = arg;
    const int me = ct_rank(group), is_refused = me == refused->rank;
    ct_group *part;
    struct scene s;

    if (is_refused)
        setenv("FAKE_CUDA_FAIL", refused->list, 1);
    if (!set_up(&s, group) || !EXPECT_OK(ct_split_group(group, 0, me, &part))
        || !EXPECT_OK(sum(&s, part)) || !EXPECT_OK(ct_set_stream(part, s.stream)))
        return;
    make_refused_call(&s, part, is_refused, refused->rank);
    all_marked(group, refused->name);
    tear_down(&s);
}

static void a_rank_whose_driver_refuses_its_part_leaves_no_stream_behind(void **state)
{
    static const struct refused leader = { 0, "cuStreamBatchMemOp:3", "leader" },
                                other = { 1, "cuStreamBatchMemOp:3", "other" };

    (void)state;
    if (!device_is_fake())
        skip();
    setenv("CT_LOG", "warn", 1);
    setenv("CT_HANDOVER", "stream", 1);
    run_processes(2, driver_refuses, (void *)(uintptr_t)&other);
    run_processes(2, driver_refuses, (void *)(uintptr_t)&leader);
}

/* The leader's kernel is in its stream, and nothing that says when it is over. */
static void half_a_call(ct_group *group, void *made)
{
    const int me = ct_rank(group);
    struct said said = { 0 };
    ct_status status;
    ct_group *part;
    struct scene s;

    if (me == 0)
        setenv("FAKE_CUDA_FAIL", "cuStreamBatchMemOp:4", 1);
    if (!set_up(&s, group) || !EXPECT_OK(ct_split_group(group, 0, me, &part))
        || !EXPECT_OK(sum(&s, part)) || !EXPECT_OK(ct_set_stream(part, s.stream)))
        return;
    status = sum(&s, part);
    EXPECT(me == 0 ? status == CT_ERR_CUDA : status == CT_OK || status == CT_ERR_PEER);
    CU(device.cuStreamSynchronize(s.stream));
    EXPECT_STATUS(ct_barrier(part, NULL), me == 0 ? CT_ERR_CUDA : CT_ERR_PEER);
    log_divert(hear, &said);
    EXPECT_OK(ct_destroy_process_group(part));
    log_divert(NULL, NULL);
    EXPECT(me == 0 || said.stands_still == 0);
    if (me == 1 && status == CT_OK)
        atomic_store((_Atomic int *)made, 1);
    all_marked(group, "half");
    tear_down(&s);
}

/* Rank 1 may hear of the failure before it makes its call: then once more. */
static void where_a_leader_never_ends_its_work_the_other_streams_go_on_in_the_end(void **state)
{
    _Atomic int *const made =
        mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(made != MAP_FAILED);
    if (!device_is_fake())
        skip();
    setenv("CT_LOG", "warn", 1);
    setenv("CT_HANDOVER", "stream", 1);
    for (int i = 0; i < 4 && !atomic_load(made); i++)
        run_processes(2, half_a_call, made);
    assert_true(atomic_load(made));
    munmap(made, sizeof *made);
}

/* ---- A rank's timeout --------------------------------------------------------------------- */

/* Of rank 2, and what its failure is called. */
struct limits {
    int call_ms, barrier_ms;
    const char *late, *here, *there;
};

/* Rank 1's stream stands still.  Rank 2 has the short limits, and is in a later call when one ends.
 */
static void one_has_a_short_limit(ct_group *group, void *arg)
{
    const struct limits *limits = arg;
    const int me = ct_rank(group);
    struct gate gate;
    struct scene s;

    if (!set_up(&s, group))
        return;
    EXPECT_OK(ct_set_stream(group, s.stream));
    EXPECT_OK(ct_set_timeout(group, me == 2 ? limits->call_ms : LONG_MS));
    if (me == 1)
        EXPECT(gate_close(&gate, s.stream));
    EXPECT_OK(sum(&s, group));
    if (me == 2) {
        EXPECT_OK(ct_set_next_timeout(group, limits->barrier_ms));
        EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_TIMEOUT, limits->here);
        mark(limits->late, 2);
    } else {
        await(limits->late, 2);
        EXPECT_ERROR(ct_barrier(group, NULL), CT_ERR_PEER, limits->there);
    }
    if (me == 1)
        gate_open(&gate);
    CU(device.cuStreamSynchronize(s.stream));
    all_marked(group, limits->call_ms == LIMIT_MS ? "passed" : "passed later");
    tear_down(&s);
}

static void ranks_that_have_gone_on_name_the_one_whose_call_was_late(void **state)
{
    static const struct limits
        in_stream = { LIMIT_MS, LONG_MS, "late in its stream",
                      "all_reduce #2|in its stream: the GPU of rank 1|has not done its part",
                      "on rank 2|all_reduce #2" },
        later = { LONG_MS, LIMIT_MS, "late later", "barrier #3", "on rank 2|barrier #3" };

    (void)state;
    setenv("CT_HANDOVER", "stream", 1);
    run_processes(3, one_has_a_short_limit, (void *)(uintptr_t)&in_stream);
    run_processes(3, one_has_a_short_limit, (void *)(uintptr_t)&later);
}

static int forget(void **state)
{
    (void)state;
    unsetenv("CT_HANDOVER");
    unsetenv("CT_LOG");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_can_be_launched_after_another_call_has_failed),
        cmocka_unit_test_teardown(a_rank_whose_driver_refuses_its_part_leaves_no_stream_behind,
                                  forget),
        cmocka_unit_test_teardown(
            where_a_leader_never_ends_its_work_the_other_streams_go_on_in_the_end, forget),
        cmocka_unit_test_teardown(ranks_that_have_gone_on_name_the_one_whose_call_was_late, forget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
