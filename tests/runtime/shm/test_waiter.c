/* SPDX-License-Identifier: Apache-2.0 */
/* test_waiter.c - a rank that sleeps in epoll_wait() is woken through its wake socket. */
#include "tests/harness.h"

#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/shm/waiter.h"
#include "runtime/util/clock.h"

enum { SLEEPERS = 8, ROUNDS = 20 };

struct sleeper {
    struct waiter waiter;
    struct doorbell bell;
    pthread_t thread;
    _Atomic int asked, answered;
};

/* It has a socket to watch, so its thread sleeps in epoll_wait(). */
static void *sleep_until_asked(void *arg)
{
    struct sleeper *s = arg;
    struct wait wait;

    for (int round = 1; round <= ROUNDS; round++) {
        wait_begin(&wait, &s->waiter, NO_DEADLINE);
        wait_sleeps_at_once(&wait);
        while (atomic_load(&s->asked) < round)
            wait_turn(&wait);
        wait_end(&wait);
        atomic_store(&s->answered, round);
    }
    return NULL;
}

static void open_sleeper(struct sleeper *s)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &s->waiter };

    memset(s, 0, sizeof *s);
    waiter_setup(&s->waiter, 1);
    s->waiter.bell = &s->bell;
    s->waiter.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    atomic_store(&s->waiter.sockets, 1);
    assert_int_equal(wake_socket_open(&s->waiter.wake_fd), CT_OK);
    wake_socket_name(s->waiter.wake_fd, &s->bell);
    assert_int_equal(epoll_ctl(s->waiter.epoll_fd, EPOLL_CTL_ADD, s->waiter.wake_fd, &event), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, sleep_until_asked, s), 0);
}

/* A sleep that is not ended by a ring lasts 100 ms. */
static void a_ring_wakes_a_rank_that_sleeps_in_epoll(void **state)
{
    static struct sleeper sleepers[SLEEPERS];
    int own;
    double late_ms = 0;

    (void)state;
    assert_int_equal(wake_socket_open(&own), CT_OK);
    for (int i = 0; i < SLEEPERS; i++)
        open_sleeper(&sleepers[i]);
    for (int round = 1; round <= ROUNDS; round++) {
        double start;

        nap(5); /* all sleep */
        start = now_ms();
        for (int i = 0; i < SLEEPERS; i++) {
            atomic_store(&sleepers[i].asked, round);
            bell_ring(&sleepers[i].bell, own);
        }
        for (int i = 0; i < SLEEPERS; i++)
            while (atomic_load(&sleepers[i].answered) < round)
                nap(1);
        late_ms += now_ms() - start;
    }
    assert_true(late_ms < ROUNDS * 50);
    for (int i = 0; i < SLEEPERS; i++) {
        pthread_join(sleepers[i].thread, NULL);
        close(sleepers[i].waiter.wake_fd);
        close(sleepers[i].waiter.epoll_fd);
    }
    close(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEAVES_NONE_OPEN(a_ring_wakes_a_rank_that_sleeps_in_epoll),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
