/* SPDX-License-Identifier: Apache-2.0 */
/* test_work.c - calls in flight: they complete in the order of the calls, can be tested and waited
 * for in any order, and a wait that ended with a timeout can be repeated.
 *
 * A call stays in flight for certain: one rank enters it only after a message of another rank,
 * which is sent after the check. */
#include "tests/harness.h"

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !__GLIBC_PREREQ(2, 33)
#define mallinfo2 mallinfo
#endif

enum { IN_FLIGHT = 16 };

/* Call i sums (r+1)(i+1) over an own place; waited for from the last to the first. */
static void many_in_flight(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    int32_t values[IN_FLIGHT];
    ct_work *work[IN_FLIGHT];

    (void)arg;
    for (int i = 0; i < IN_FLIGHT; i++) {
        values[i] = (me + 1) * (i + 1);
        EXPECT_OK(ct_all_reduce(group, &values[i], &values[i], 1, CT_I32, CT_SUM, &work[i]));
    }
    for (int i = IN_FLIGHT - 1; i >= 0; i--)
        EXPECT_OK(ct_wait(work[i]));
    for (int i = 0; i < IN_FLIGHT; i++)
        EXPECT(values[i] == (i + 1) * p * (p + 1) / 2);
}

static void calls_in_flight_are_waited_for_in_any_order(void **state)
{
    (void)state;
    run_ranks(1, many_in_flight, NULL);
    run_ranks(4, many_in_flight, NULL);
}

/* Each call works on the result of the one before: with p ranks 1, p, p^2, ... */
static void chained(ct_group *group, void *arg)
{
    const int p = ct_size(group);
    int64_t value = 1, expected = 1;
    ct_work *work[8], *last;
    int done = 0;

    (void)arg;
    for (int i = 0; i < 8; i++) {
        expected *= p;
        EXPECT_OK(ct_all_reduce(group, &value, &value, 1, CT_I64, CT_SUM, &work[i]));
    }
    EXPECT_OK(ct_broadcast(group, &value, 1, CT_I64, p - 1, &last));
    EXPECT_OK(ct_wait(last));
    EXPECT(value == expected);
    for (int i = 0; i < 8; i++) { /* the last is done, so are those before */
        EXPECT_OK(ct_test(work[i], &done));
        EXPECT(done);
        EXPECT_OK(ct_wait(work[i]));
    }
}

static void calls_in_flight_complete_in_order(void **state)
{
    (void)state;
    run_ranks(3, chained, NULL);
}

/* A blocking call behind asynchronous ones on the same memory comes after them. */
static void blocking_behind(ct_group *group, void *arg)
{
    const size_t n = 100000;
    const int p = ct_size(group);
    int32_t *a = malloc(n * sizeof *a);
    ct_work *work[3];
    size_t right = 0;

    (void)arg;
    for (size_t i = 0; i < n; i++)
        a[i] = 1;
    for (int i = 0; i < 3; i++)
        EXPECT_OK(ct_all_reduce(group, a, a, n, CT_I32, CT_SUM, &work[i]));
    EXPECT_OK(ct_all_reduce(group, a, a, n, CT_I32, CT_SUM, NULL));
    for (size_t i = 0; i < n; i++)
        right += a[i] == p * p * p * p;
    EXPECT(right == n);
    for (int i = 0; i < 3; i++)
        EXPECT_OK(ct_wait(work[i]));
    free(a);
}

static void a_blocking_call_comes_after_those_in_flight(void **state)
{
    (void)state;
    run_ranks(3, blocking_behind, NULL);
}

/* Rank 1 comes to the barrier only after rank 0 has seen it unfinished. */
static void given_up_and_repeated(ct_group *group, void *arg)
{
    char token = 0;
    ct_work *work = NULL;
    int done = 1;

    (void)arg;
    if (ct_rank(group) == 1)
        EXPECT_OK(ct_recv(group, &token, 1, CT_U8, 0, 0, NULL));
    EXPECT_OK(ct_barrier(group, &work));
    if (ct_rank(group) == 0) {
        EXPECT_ERROR(
            ct_wait_for(work, 30), CT_ERR_TIMEOUT,
            "ct_wait_for: not done after 30 ms; the work must still be passed to ct_wait()");
        EXPECT_OK(ct_test(work, &done));
        EXPECT(!done);
        EXPECT_STATUS(ct_wait_for(work, 0), CT_ERR_TIMEOUT);
        EXPECT_OK(ct_send(group, &token, 1, CT_U8, 1, 0));
    }
    EXPECT_OK(ct_rank(group) == 0 ? ct_wait(work) : ct_wait_for(work, GROUP_TIMEOUT_MS));
    EXPECT_OK(ct_barrier(group, NULL)); /* nothing is broken */
}

static void a_wait_that_gave_up_is_repeated(void **state)
{
    (void)state;
    run_ranks(2, given_up_and_repeated, NULL);
}

/* The same for a message: rank 0 receives before rank 1 sends. */
static void message_given_up(ct_group *group, void *arg)
{
    int32_t value = -1, answer = 42;
    ct_work *work = NULL;
    int done = 1, from = -1;

    (void)arg;
    if (ct_rank(group) == 0) {
        EXPECT_OK(ct_irecv(group, &value, 1, CT_I32, CT_ANY_SOURCE, 1, &work));
        EXPECT_OK(ct_test(work, &done));
        EXPECT(!done);
        EXPECT_ERROR(
            ct_wait_for(work, 30), CT_ERR_TIMEOUT,
            "ct_wait_for: irecv not done after 30 ms; the work must still be passed to ct_wait()");
        EXPECT_OK(ct_send(group, &answer, 1, CT_I32, 1, 0));
        while (!done && EXPECT_OK(ct_test(work, &done)))
            continue;
        EXPECT_OK(ct_wait_from(work, &from));
        EXPECT(from == 1 && value == 43);
    } else {
        EXPECT_OK(ct_recv(group, &value, 1, CT_I32, 0, 0, NULL));
        value++;
        EXPECT_OK(ct_send(group, &value, 1, CT_I32, 0, 1));
    }
    EXPECT_OK(ct_barrier(group, NULL));
}

static void a_message_is_tested_and_waited_for_again(void **state)
{
    (void)state;
    run_ranks(2, message_given_up, NULL);
}

static void no_work(ct_group *group, void *arg)
{
    ct_work *work = (ct_work *)&work;
    int done = 0, from = 5;

    (void)arg;
    EXPECT_OK(ct_wait(NULL));
    EXPECT_OK(ct_wait_from(NULL, &from));
    EXPECT_OK(ct_wait_for(NULL, 0));
    EXPECT_OK(ct_test(NULL, &done));
    EXPECT(done && from == 5);
    EXPECT_STATUS(ct_broadcast(group, NULL, 1, CT_I32, 0, &work), CT_ERR_INVALID);
    EXPECT(work == NULL); /* a refused call owes nothing */
}

static void waiting_for_nothing_is_right(void **state)
{
    (void)state;
    run_ranks(1, no_work, NULL);
}

/* Arrays of the v forms may go once the call returned. */
static void arrays_are_copied(ct_group *group, void *arg)
{
    const int p = ct_size(group), me = ct_rank(group);
    size_t counts[MAX_RANKS], displs[MAX_RANKS];
    int32_t in[MAX_RANKS], mine = me * 10;
    ct_work *work = NULL;

    (void)arg;
    for (int r = 0; r < p; r++) {
        counts[r] = 1;
        displs[r] = (size_t)(p - 1 - r);
        in[r] = -1;
    }
    EXPECT_OK(ct_all_gather_v(group, &mine, 1, in, counts, displs, CT_I32, &work));
    for (int r = 0; r < p; r++)
        counts[r] = displs[r] = 1000000000;
    EXPECT_OK(ct_wait(work));
    for (int r = 0; r < p; r++)
        EXPECT(in[p - 1 - r] == r * 10);
}

static void the_arrays_of_a_call_in_flight_are_its_own(void **state)
{
    (void)state;
    run_ranks(4, arrays_are_copied, NULL);
}

/* A call in flight gives the group a thread; the harness counts what stays. */
static void with_a_thread(ct_group *group, void *arg)
{
    ct_group_options options = CT_GROUP_OPTIONS_INIT;
    const int list[] = { 0, 1, 2 }, p = ct_size(group);
    int32_t value = 1;
    ct_group *child = NULL;
    ct_work *work = NULL;

    (void)arg;
    options.parent = group;
    if (!EXPECT_OK(ct_new_group_with(list, p, &options, &child)))
        return;
    EXPECT_OK(ct_all_reduce(child, &value, &value, 1, CT_I32, CT_SUM, &work));
    EXPECT_OK(ct_wait(work));
    EXPECT(value == p);
    EXPECT_OK(ct_destroy_process_group(child));
}

static void a_group_with_a_thread_ends_without_it(void **state)
{
    (void)state;
    run_ranks(3, with_a_thread, NULL);
}

/* ---- Threads that wait and watch ------------------------------------------------------------ */

enum { SHARED = 8 }; /* works, one thread for each */

struct waiting {
    ct_group *group;
    ct_work *work;
    ct_status status;
    char sentence[300];
};

static void *wait_in_thread(void *arg)
{
    struct waiting *w = arg;

    w->status = ct_wait(w->work);
    snprintf(w->sentence, sizeof w->sentence, "%s", w->status == CT_OK ? "" : ct_last_error());
    return NULL;
}

/* Counts the tags until ct_watch_end(). */
static void *count_watched(void *arg)
{
    struct waiting *w = arg;
    void *tag = NULL;
    intptr_t count = 0;

    while ((w->status = ct_watched(w->group, &tag)) == CT_OK && tag)
        count++;
    return (void *)count;
}

/* Starts calls that rank 0 alone makes, a thread that waits for each, and one that watches them.
 * Then aborts the group. */
static void abort_the_waits_of_threads(ct_group *group)
{
    struct waiting waits[SHARED], watcher = { .group = group };
    pthread_t threads[SHARED], watching;
    int32_t values[SHARED] = { 0 };
    int done = 0, watched = 0;
    void *counted = NULL;

    for (int i = 0; i < SHARED; i++) {
        EXPECT_OK(ct_all_reduce(group, &values[i], &values[i], 1, CT_I32, CT_SUM, &waits[i].work));
        EXPECT_OK(ct_watch(waits[i].work, &values[i], &done));
        watched += !done;
    }
    pthread_create(&watching, NULL, count_watched, &watcher);
    for (int i = 0; i < SHARED; i++)
        pthread_create(&threads[i], NULL, wait_in_thread, &waits[i]);
    nap(20);
    EXPECT_OK(ct_abort(group));
    for (int i = 0; i < SHARED; i++) {
        pthread_join(threads[i], NULL);
        EXPECT(waits[i].status == CT_ERR_ABORTED);
        EXPECT(strstr(waits[i].sentence, "ct_abort() was called on group"));
    }
    EXPECT_OK(ct_watch_end(group));
    pthread_join(watching, &counted);
    EXPECT(watcher.status == CT_OK && (intptr_t)counted == watched);
}

static void aborted_in_threads(ct_group *group, void *arg)
{
    ct_group *part = NULL;

    (void)arg;
    if (!EXPECT_OK(ct_split_group(group, 0, ct_rank(group), &part)))
        return;
    if (ct_rank(group) == 0)
        abort_the_waits_of_threads(part);
    EXPECT_OK(ct_barrier(group, NULL));
    EXPECT_OK(ct_destroy_process_group(part));
}

static void an_abort_ends_the_waits_of_all_threads(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        run_ranks(2, aborted_in_threads, NULL);
}

/* Each tag comes once, in the order of the calls, also if ct_wait() came first. */
static void watched(ct_group *group, void *arg)
{
    int32_t values[SHARED], *tag = NULL;
    ct_work *works[SHARED], *message = NULL;
    int done[SHARED], is_done = 0;

    (void)arg;
    EXPECT_OK(ct_watch(NULL, values, &is_done));
    EXPECT(is_done);
    EXPECT_OK(ct_watched(group, (void **)&tag)); /* no call can be done */
    EXPECT(tag == NULL);
    for (int i = 0; i < SHARED; i++) {
        values[i] = 1;
        EXPECT_OK(ct_all_reduce(group, &values[i], &values[i], 1, CT_I32, CT_SUM, &works[i]));
        EXPECT_OK(ct_watch(works[i], &values[i], &done[i]));
        EXPECT_STATUS(ct_watch(works[i], NULL, &is_done), CT_ERR_INVALID);
        EXPECT_STATUS(ct_watch(works[i], values, NULL), CT_ERR_INVALID);
    }
    EXPECT_OK(ct_wait(works[0]));
    for (int i = 0; i < SHARED; i++) {
        if (!done[i])
            EXPECT_OK(ct_watched(group, (void **)&tag));
        EXPECT(done[i] || tag == &values[i]);
        EXPECT(values[i] == ct_size(group));
        if (i > 0)
            EXPECT_OK(ct_wait(works[i]));
    }
    EXPECT_OK(ct_isend(group, values, 1, CT_I32, 1 - ct_rank(group), 0, &message));
    EXPECT_ERROR(ct_watch(message, values, &is_done), CT_ERR_UNSUPPORTED, "isend");
    EXPECT_OK(ct_recv(group, values, 1, CT_I32, 1 - ct_rank(group), 0, NULL));
    EXPECT_OK(ct_wait(message));
    EXPECT_OK(ct_watch_end(group));
    EXPECT_OK(ct_watched(group, (void **)&tag));
    EXPECT(tag == NULL);
    EXPECT_OK(ct_barrier(group, NULL));
}

static void each_call_that_is_watched_is_reported_once(void **state)
{
    (void)state;
    run_ranks(2, watched, NULL);
}

enum { LEFT = 100 }; /* works, of each kind */

/* Makes a group and works without a ct_wait(). */
static void leave_works(ct_group *group)
{
    static int32_t out[LEFT], in[LEFT], sums[LEFT], more[LEFT];
    const int other = 1 - ct_rank(group);
    ct_work *work, *works[LEFT];
    ct_p2p ops[LEFT];
    ct_group *part = NULL;

    if (!EXPECT_OK(ct_split_group(group, 0, ct_rank(group), &part)))
        return;
    for (int i = 0; i < LEFT; i++) {
        EXPECT_OK(ct_isend(part, &out[i], 1, CT_I32, other, 1, &work));
        EXPECT_OK(ct_irecv(part, &in[i], 1, CT_I32, other, 2, &work));
        EXPECT_OK(ct_all_reduce(part, &out[i], &sums[i], 1, CT_I32, CT_SUM, &work));
        ops[i] = (ct_p2p){ CT_P2P_RECV, &more[i], 1, CT_I32, other, 3 };
    }
    EXPECT_OK(ct_batch_isend_irecv(part, ops, LEFT, works));
    EXPECT_OK(ct_barrier(part, NULL));
    EXPECT_OK(ct_destroy_process_group(part));
}

/* A message that was not waited for has its own memory of more than 500 bytes. */
static void leaves_works(ct_group *group, void *arg)
{
    size_t before;

    (void)arg;
    for (int i = 0; i < 8; i++)
        leave_works(group); /* now memory that is kept for later is allocated */
    before = mallinfo2().uordblks;
    leave_works(group);
    EXPECT(mallinfo2().uordblks < before + LEFT * (size_t)100);
}

static void works_that_nobody_waits_for_end_with_their_group(void **state)
{
    (void)state;
    run_processes(2, leaves_works, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_in_flight_are_waited_for_in_any_order),
        cmocka_unit_test(calls_in_flight_complete_in_order),
        cmocka_unit_test(a_blocking_call_comes_after_those_in_flight),
        cmocka_unit_test(a_wait_that_gave_up_is_repeated),
        cmocka_unit_test(a_message_is_tested_and_waited_for_again),
        cmocka_unit_test(waiting_for_nothing_is_right),
        cmocka_unit_test(the_arrays_of_a_call_in_flight_are_its_own),
        cmocka_unit_test(a_group_with_a_thread_ends_without_it),
        cmocka_unit_test(works_that_nobody_waits_for_end_with_their_group),
        cmocka_unit_test(an_abort_ends_the_waits_of_all_threads),
        cmocka_unit_test(each_call_that_is_watched_is_reported_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
