/* SPDX-License-Identifier: Apache-2.0 */
/* test_waiter.c - a rank that sleeps in epoll_wait() is woken through its wake socket; and one
 * sleeps where a filter forbids the call that it would sleep in. */
#include "tests/harness.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
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

/* ---- Without futex_waitv() --------------------------------------------------------------- */

enum { FUTEX_WAITV = 449, FOR_MS = 200, UNKNOWN = -1 };

/* How often it tests in FOR_MS.  The filter is of this thread alone. */
static void *count_turns(void *arg)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAITV, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = { sizeof rules / sizeof *rules, rules };
    _Atomic uint32_t notices = 0;
    struct doorbell bell = { .sleepers = 0 };
    struct waiter waiter;
    struct wait wait;
    int *const turns = arg;
    double start;

    *turns = UNKNOWN;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
        return NULL;
    memset(&waiter, 0, sizeof waiter);
    waiter_setup(&waiter, 1);
    waiter.bell = &bell;
    waiter.epoll_fd = -1;
    waiter.notices = &notices;
    wait_begin(&wait, &waiter, NO_DEADLINE);
    wait_sleeps_at_once(&wait);
    *turns = 0;
    for (start = now_ms(); now_ms() - start < FOR_MS; ++*turns)
        wait_turn(&wait);
    wait_end(&wait);
    return NULL;
}

static void a_rank_sleeps_where_a_filter_forbids_to_wait_for_two_words(void **state)
{
    pthread_t thread;
    int turns;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, count_turns, &turns), 0);
    pthread_join(thread, NULL);
    if (turns == UNKNOWN)
        skip();
    assert_true(turns <= FOR_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LEAVES_NONE_OPEN(a_ring_wakes_a_rank_that_sleeps_in_epoll),
        LEAVES_NONE_OPEN(a_rank_sleeps_where_a_filter_forbids_to_wait_for_two_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
