/* SPDX-License-Identifier: Apache-2.0 */
/* test_driver_calls.c - what an all-reduce of two buffers asks of the driver: calls, queries,
 * events, words in streams, for the leader and for the others. */
#include "tests/harness.h"

#ifdef CT_WITH_CUDA

#include <dlfcn.h>

#include "include/ct_cuda.h"
#include "tests/cuda/streams.h"
#include "tests/fake/counts.h"

enum { CALLS = 10, WAIT_MS = 500, MOST_QUERIES = 4000 };

/* Of each all-reduce. */
struct costs {
    const char *handover;              /* CT_HANDOVER; NULL: no stream was set */
    int calls[2], events[2], words[2]; /* of the leader, of another rank */
};

static int count(enum fake_count which)
{
    _Atomic int *counts = dlsym(RTLD_DEFAULT, "fake_counts");

    return counts ? atomic_load(&counts[which]) : 0;
}

static int is_each(const char *what, int all, int each)
{
    if (all == CALLS * each)
        return 1;
    print_error("%s: %d in %d calls, not %d in each\n", what, all, CALLS, each);
    return 0;
}

/* The stream is idle before each call, and no thread of the group's is at work. */
static void reduce_and_wait(const struct scene *s, ct_group *group)
{
    EXPECT_OK(ct_all_reduce(group, s->send, s->recv, COUNT, CT_I32, CT_SUM, NULL));
    CU(device.cuStreamSynchronize(s->stream));
    EXPECT_OK(ct_barrier(group, NULL));
}

static void count_driver_calls(ct_group *group, void *arg)
{
    const struct costs *costs = arg;
    const int other = ct_rank(group) > 0;
    int before[FAKE_COUNTS];
    struct scene s;

    if (!set_up(&s, group))
        return;
    if (costs->handover)
        EXPECT_OK(ct_set_stream(group, s.stream));
    for (int i = 0; i < 3; i++)
        reduce_and_wait(&s, group);
    for (int i = 0; i < FAKE_COUNTS; i++)
        before[i] = count((enum fake_count)i);
    for (int i = 0; i < CALLS; i++)
        reduce_and_wait(&s, group);
    if (!getenv("FAKE_CUDA_ADDRESSES")) /* else each word's address is asked for */
        EXPECT(
            is_each("calls", count(FAKE_CALLS) - before[FAKE_CALLS] - CALLS, costs->calls[other]));
    EXPECT(is_each("events", count(FAKE_EVENTS) - before[FAKE_EVENTS], costs->events[other]));
    EXPECT(is_each("words", count(FAKE_WORDS) - before[FAKE_WORDS], costs->words[other]));
    tear_down(&s);
}

static void run_with(const struct costs *costs, int ranks)
{
    if (costs->handover)
        setenv("CT_HANDOVER", costs->handover, 1);
    run_processes(ranks, count_driver_calls, (void *)(uintptr_t)costs);
    unsetenv("CT_HANDOVER");
}

static const struct costs of_two[] = {
    { NULL, { 13, 12 }, { 1, 1 }, { 0, 0 } },
    { "host", { 21, 20 }, { 0, 0 }, { 2, 2 } },
    { "stream", { 16, 14 }, { 0, 0 }, { 4, 3 } },
};
static const struct costs of_eight = { "stream", { 16, 14 }, { 0, 0 }, { 10, 3 } };

static void an_all_reduce_in_no_stream_records_an_event_in_the_default_one(void **state)
{
    (void)state;
    run_with(&of_two[0], 2);
}

static void an_all_reduce_in_an_idle_stream_records_no_event(void **state)
{
    (void)state;
    run_with(&of_two[1], 2);
}

static void streams_that_hand_an_all_reduce_over_take_a_word_for_each_rank_and_three(void **state)
{
    (void)state;
    run_with(&of_two[2], 2);
    run_with(&of_eight, 8);
}

/* A wait that asked without a pause would ask tens of thousands of times. */
static void wait_for_long(ct_group *group, void *arg)
{
    struct gate gate;
    struct scene s;
    int queries;

    (void)arg;
    if (!set_up(&s, group) || !EXPECT_OK(ct_set_timeout(group, WAIT_MS))
        || !EXPECT(gate_close(&gate, NULL)))
        return;
    queries = count(FAKE_QUERIES);
    EXPECT_STATUS(ct_all_reduce(group, s.send, s.recv, COUNT, CT_I32, CT_SUM, NULL),
                  CT_ERR_TIMEOUT);
    EXPECT(count(FAKE_QUERIES) - queries < MOST_QUERIES);
    gate_open(&gate);
    tear_down(&s);
}

static void the_longer_a_wait_for_a_gpu_takes_the_less_often_it_asks_the_driver(void **state)
{
    (void)state;
    run_processes(1, wait_for_long, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longer_a_wait_for_a_gpu_takes_the_less_often_it_asks_the_driver),
        cmocka_unit_test(an_all_reduce_in_no_stream_records_an_event_in_the_default_one),
        cmocka_unit_test(an_all_reduce_in_an_idle_stream_records_no_event),
        cmocka_unit_test(streams_that_hand_an_all_reduce_over_take_a_word_for_each_rank_and_three),
    };

    return device_is_fake() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}

#else

int main(void)
{
    return 77; /* skipped: built without CUDA */
}

#endif
