/* SPDX-License-Identifier: Apache-2.0 */
/* test_task_queue.c - tasks run in order and one at a time, whether the queue's thread runs them or
 * a thread that waits for one of them. */
#include "tests/harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/util/clock.h"
#include "runtime/util/task_queue.h"

enum { TASKS = 64, WAITERS = 4, ROUNDS = 200 };

static struct {
    _Atomic int running; /* tasks that run now */
    int order[TASKS];    /* numbers of the tasks in the order in which they ran */
    int ran;
    _Atomic int may_end; /* a task of run_until_told() ends when this is 1 */
} seen;

struct numbered {
    struct task task; /* first field */
    int number;
    pthread_t ran_on;
    ct_status status;
};

static void nap_us(int64_t us)
{
    nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

static ct_status run_numbered(struct task *task)
{
    struct numbered *n = (struct numbered *)task;

    EXPECT(atomic_fetch_add(&seen.running, 1) == 0);
    n->ran_on = pthread_self();
    seen.order[seen.ran++] = n->number;
    EXPECT(atomic_fetch_sub(&seen.running, 1) == 1);
    return n->status == CT_OK ? CT_OK : ct_fail(n->status, "task %d failed", n->number);
}

static ct_status run_until_told(struct task *task)
{
    const ct_status status = run_numbered(task);

    while (!atomic_load(&seen.may_end))
        nap_us(100);
    return status;
}

static void reset(void)
{
    seen.ran = 0;
    atomic_store(&seen.may_end, 0);
}

static struct numbered numbered(int number, int suits_waiters)
{
    return (struct numbered){ .task = { .run = run_numbered, .suits_waiters = suits_waiters },
                              .number = number };
}

static void await_done(struct queue *q, const struct task *task)
{
    for (int i = 0; i < 100000 && !queue_test(q, task); i++)
        nap_us(100);
    assert_true(queue_test(q, task));
}

/* ---- Who runs a task ------------------------------------------------------------------ */

static void a_thread_that_waits_at_once_runs_its_task_itself(void **state)
{
    struct queue *q = NULL;
    int own = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct numbered n = numbered(0, 1);

        reset();
        EXPECT_OK(queue_push(&q, &n.task));
        EXPECT_OK(queue_wait(q, &n.task, NO_DEADLINE));
        own += pthread_equal(n.ran_on, pthread_self()) != 0;
    }
    assert_true(own > 500); /* not all: the queue's thread is woken at first */
    queue_destroy(q);
}

static void a_task_that_does_not_suit_waiters_runs_on_the_queue_s_thread(void **state)
{
    struct queue *q = NULL;

    (void)state;
    for (int i = 0; i < 100; i++) {
        struct numbered before = numbered(0, 1), n = numbered(1, 0);

        reset();
        EXPECT_OK(queue_push(&q, &before.task));
        EXPECT_OK(queue_push(&q, &n.task));
        queue_drain(q);
        EXPECT(!pthread_equal(n.ran_on, pthread_self()));
    }
    queue_destroy(q);
}

/* The queue's thread naps then, since a thread that waited ran the tasks before. */
static void a_task_for_which_nobody_waits_runs_as_well(void **state)
{
    struct queue *q = NULL;

    (void)state;
    for (int i = 0; i < 20; i++) {
        struct numbered tasks[8];

        for (int k = 0; k < 8; k++) {
            reset();
            tasks[k] = numbered(0, 1);
            EXPECT_OK(queue_push(&q, &tasks[k].task));
            if (k < 7)
                EXPECT_OK(queue_wait(q, &tasks[k].task, NO_DEADLINE));
        }
        await_done(q, &tasks[7].task);
    }
    queue_destroy(q);
}

/* ---- Order ------------------------------------------------------------------------------ */

struct waiter_of {
    struct queue *q;
    struct numbered *tasks;
    int first;
};

/* Waits for every WAITERS-th task, from the last to the first. */
static void *wait_for_some(void *arg)
{
    const struct waiter_of *w = arg;

    for (int i = TASKS - WAITERS + w->first; i >= 0; i -= WAITERS) {
        struct numbered *n = &w->tasks[i];
        const ct_status status = queue_wait(w->q, &n->task, NO_DEADLINE);

        EXPECT(status == n->status);
        if (status != CT_OK) {
            char sentence[32];

            snprintf(sentence, sizeof sentence, "task %d failed", i);
            EXPECT(strcmp(ct_last_error(), sentence) == 0);
        }
    }
    return NULL;
}

static void tasks_run_in_order_while_several_threads_wait(void **state)
{
    struct queue *q = NULL;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct numbered tasks[TASKS];
        struct waiter_of waiters[WAITERS];
        pthread_t threads[WAITERS];

        reset();
        for (int i = 0; i < TASKS; i++) {
            tasks[i] = numbered(i, i % 16 != 5);
            tasks[i].status = i % 16 == 3 ? CT_ERR_SYSTEM : CT_OK;
            EXPECT_OK(queue_push(&q, &tasks[i].task));
        }
        for (int i = 0; i < WAITERS; i++) {
            waiters[i] = (struct waiter_of){ q, tasks, i };
            assert_int_equal(pthread_create(&threads[i], NULL, wait_for_some, &waiters[i]), 0);
        }
        for (int i = 0; i < WAITERS; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(seen.ran, TASKS);
        for (int i = 0; i < TASKS; i++)
            assert_int_equal(seen.order[i], i);
    }
    queue_destroy(q);
}

/* ---- Threads that serve ------------------------------------------------------------------- */

struct serving {
    struct queue *q;
    _Atomic int returned[TASKS]; /* how often the tag of each task was returned */
    _Atomic int count;
};

/* Returns after queue_dismiss().  Each tag is the address of its count. */
static void *serve(void *arg)
{
    struct serving *s = arg;
    _Atomic int *tag;

    while ((tag = queue_serve(s->q))) {
        atomic_fetch_add(tag, 1);
        atomic_fetch_add(&s->count, 1);
    }
    return NULL;
}

static void begin_serving(struct serving *s, pthread_t *threads, int count)
{
    struct numbered first = numbered(0, 1);

    memset(s, 0, sizeof *s);
    reset();
    EXPECT_OK(queue_push(&s->q, &first.task));
    queue_drain(s->q);
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, serve, s), 0);
}

static void end_serving(struct serving *s, const pthread_t *threads, int count)
{
    queue_dismiss(s->q);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    assert_null(queue_serve(s->q));
    queue_destroy(s->q);
}

static void a_thread_that_serves_runs_tasks_and_gets_the_tags_of_those_watched(void **state)
{
    struct serving s;
    pthread_t thread;
    int served = 0;

    (void)state;
    begin_serving(&s, &thread, 1);
    for (int i = 0; i < 100; i++) {
        struct numbered n = numbered(0, 1);
        int done;

        nap_us(100); /* until the server keeps the queue */
        reset();
        EXPECT_OK(queue_push(&s.q, &n.task));
        EXPECT_OK(queue_watch(s.q, &n.task, &s.returned[0], &done));
        while (!done && atomic_load(&s.count) <= i)
            nap_us(10);
        if (done) /* the tag is not returned */
            atomic_fetch_add(&s.count, 1);
        EXPECT_OK(queue_wait(s.q, &n.task, NO_DEADLINE));
        served += pthread_equal(n.ran_on, thread) != 0;
        EXPECT_OK(queue_watch(s.q, &n.task, &s.returned[1], &done));
        EXPECT(done);
    }
    assert_true(served > 50);
    end_serving(&s, &thread, 1);
    assert_int_equal(s.returned[1], 0);
}

/* Servers, threads that wait and the queue's own thread, which alone suits some tasks. */
static void each_tag_is_returned_once_and_tasks_stay_in_order(void **state)
{
    pthread_t servers[WAITERS], threads[WAITERS];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const int count = 1 + round % WAITERS;
        struct numbered tasks[TASKS];
        struct waiter_of waiters[WAITERS];
        struct serving s;
        int expected = 0, done;

        begin_serving(&s, servers, count);
        reset();
        for (int i = 0; i < TASKS; i++) {
            tasks[i] = numbered(i, i % 16 != 5);
            EXPECT_OK(queue_push(&s.q, &tasks[i].task));
            EXPECT_OK(queue_watch(s.q, &tasks[i].task, &s.returned[i], &done));
            expected += !done;
            if (done)
                atomic_store(&s.returned[i], 1);
        }
        for (int i = 0; i < WAITERS; i++) {
            waiters[i] = (struct waiter_of){ s.q, tasks, i };
            assert_int_equal(pthread_create(&threads[i], NULL, wait_for_some, &waiters[i]), 0);
        }
        for (int i = 0; i < WAITERS; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < 100000 && atomic_load(&s.count) < expected; i++)
            nap_us(100);
        end_serving(&s, servers, count);
        for (int i = 0; i < TASKS; i++) {
            assert_int_equal(seen.order[i], i);
            assert_int_equal(s.returned[i], 1);
        }
    }
}

/* The only server does not return to the queue. */
static void tasks_run_while_the_server_is_elsewhere(void **state)
{
    struct queue *q = NULL;
    struct numbered tasks[9];
    int done;

    (void)state;
    reset();
    for (int i = 0; i < 8; i++) {
        tasks[i] = numbered(i, 1);
        EXPECT_OK(queue_push(&q, &tasks[i].task));
        EXPECT_OK(queue_watch(q, &tasks[i].task, &tasks[i], &done));
        if (!done)
            assert_non_null(queue_serve(q));
        await_done(q, &tasks[i].task);
    }
    tasks[8] = numbered(8, 1); /* is done when the queue ends */
    EXPECT_OK(queue_push(&q, &tasks[8].task));
    queue_destroy(q);
    assert_int_equal(seen.ran, 9);
}

/* ---- Waits that end sooner, and the end of a queue ---------------------------------------- */

static void *wait_for_task(void *arg)
{
    const struct waiter_of *w = arg;

    EXPECT_OK(queue_wait(w->q, &w->tasks[0].task, NO_DEADLINE));
    return NULL;
}

/* Lets a thread that waits run tasks[0], which lasts until it is told. */
static pthread_t begin_long_task(struct queue **q, struct numbered *task, struct waiter_of *w)
{
    pthread_t thread;

    reset();
    *task = numbered(0, 1);
    task->task.run = run_until_told;
    EXPECT_OK(queue_push(q, &task->task));
    *w = (struct waiter_of){ *q, task, 0 };
    assert_int_equal(pthread_create(&thread, NULL, wait_for_task, w), 0);
    return thread;
}

static void a_wait_with_a_deadline_runs_nothing_and_ends_in_time(void **state)
{
    struct queue *q = NULL;
    struct numbered tasks[2];
    struct waiter_of w;
    pthread_t thread;

    (void)state;
    thread = begin_long_task(&q, &tasks[0], &w);
    tasks[1] = numbered(1, 1);
    EXPECT_OK(queue_push(&q, &tasks[1].task));
    EXPECT_STATUS(queue_wait(q, &tasks[0].task, clock_ms() + 20), CT_ERR_TIMEOUT);
    EXPECT_STATUS(queue_wait(q, &tasks[1].task, clock_ms() + 20), CT_ERR_TIMEOUT);
    EXPECT(!queue_drain_by(q, clock_ms() + 20));
    atomic_store(&seen.may_end, 1);
    EXPECT_OK(queue_wait(q, &tasks[1].task, clock_ms() + GROUP_TIMEOUT_MS));
    assert_int_equal(seen.order[1], 1);
    pthread_join(thread, NULL);
    queue_destroy(q);
}

static void *tell_later(void *arg)
{
    nap_us(20000);
    atomic_store(&seen.may_end, 1);
    return arg;
}

static void a_queue_ends_after_its_last_task(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct queue *q = NULL;
        struct numbered tasks[2];
        pthread_t thread;

        reset();
        for (int k = 0; k < 2; k++) {
            tasks[k] = numbered(k, 1);
            tasks[k].task.run = run_until_told;
            EXPECT_OK(queue_push(&q, &tasks[k].task));
        }
        assert_int_equal(pthread_create(&thread, NULL, tell_later, NULL), 0);
        if (i % 2)
            queue_drain(q);
        queue_destroy(q);
        assert_int_equal(seen.ran, 2);
        EXPECT(tasks[1].task.state == TASK_DONE);
        pthread_join(thread, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_waits_at_once_runs_its_task_itself),
        cmocka_unit_test(a_task_that_does_not_suit_waiters_runs_on_the_queue_s_thread),
        cmocka_unit_test(a_task_for_which_nobody_waits_runs_as_well),
        cmocka_unit_test(tasks_run_in_order_while_several_threads_wait),
        cmocka_unit_test(a_thread_that_serves_runs_tasks_and_gets_the_tags_of_those_watched),
        cmocka_unit_test(each_tag_is_returned_once_and_tasks_stay_in_order),
        cmocka_unit_test(tasks_run_while_the_server_is_elsewhere),
        cmocka_unit_test(a_wait_with_a_deadline_runs_nothing_and_ends_in_time),
        cmocka_unit_test(a_queue_ends_after_its_last_task),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
