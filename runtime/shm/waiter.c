/* SPDX-License-Identifier: Apache-2.0 */
/* waiter.c - spin, yield, sleep.
 *
 * With a core for each rank a hand-over by spinning costs 0.06 us and one by
 * futex 3 to 20, so a wait first spins.  With more ranks than cores a spinner
 * keeps the very rank off the core that it waits for (4 ms, a tick): then it
 * yields at once.
 *
 * Sleep is catching.  To wake a virtual processor that had nothing to do took 50 to 600 us here;
 * who waits for the woken one and sleeps sooner than that has to be woken so next: hundreds of
 * calls in a row took 350 us each.  So a wait stays awake for longer than that, 500 us, and up to
 * 2 ms as long as sleeps turn out to be short.  But where the awaited one or another program
 * needs the same processor, our yields take of its time and of our share: there a wait sleeps after
 * some dozens of them, since a processor that is busy wakes us at once.
 *
 * No sleep is longer than 100 ms, so that a peer's death without a ring is seen.
 *
 * Under ctrun a sleeper hears two words: its bell, which peers ring, and the news of the
 * control page, which ctrun raises for all ranks of the host at once.  Before Linux 5.16 a
 * thread can sleep on one word only; there it looks at the other every 5 ms. */
#include "runtime/shm/waiter.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/util/cgroup.h"
#include "runtime/util/clock.h"

#define TURNS_BETWEEN_LOOKS 64 /* at where the awaited rank is: the line is another core's */
#define LONGEST_SLEEP_MS 100   /* a death without a ring is seen so soon */
#define FIRST_SLEEP_MS 2       /* of who asked for a first look soon */
#define LONGEST_DEAF_MS 5      /* to ctrun's word, where one can sleep on one word only */
#define SHORT_SLEEP_MS 1       /* on the bell, where deaths are heard in epoll_wait() only */

#define SPINS_WITH_A_CORE 2000 /* some 50 us; a hand-over between two cores takes less */

/* Awake longer than it takes to wake a processor, so that sleep isn't caught (above). */
#define YIELDING_NS 500000
#define LONGEST_YIELDING_NS 2000000
/* Where somebody needs our processor: enough to let each of a dozen ranks run a few times. */
#define YIELDS 40
/* What the yield took tells: back at once, nobody ran; for so long, not a rank, which would have
 * slept or yielded itself, but a program at work. */
#define YIELD_TO_NOBODY_NS 1000
#define YIELD_TO_WORK_NS 100000
/* How long that is believed, at first and after it was seen again and again. */
#define CROWDED_NS 2000000
#define LONGEST_CROWDED_NS 256000000

/* ---- Doorbells ------------------------------------------------------------------ */

/* Orders the caller's news before its look at who sleeps; the sleeper orders its
 * announcement before its last look at the news.  ThreadSanitizer knows no
 * fences, but an atomic read-modify-write does the same. */
void bell_fence(void)
{
#ifdef CT_THREAD_SANITIZER
    static _Atomic int word;

    atomic_fetch_add(&word, 1);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

void bell_wake(struct doorbell *bell, int event_fd)
{
    const uint64_t one = 1;

    if (atomic_load_explicit(&bell->sleepers, memory_order_relaxed)) {
        atomic_fetch_add(&bell->word, 1);
        syscall(SYS_futex, &bell->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
    if (atomic_load_explicit(&bell->polling, memory_order_relaxed)
        && atomic_exchange(&bell->polling, 0) && write(event_fd, &one, sizeof one) < 0)
        return; /* EAGAIN: the counter is full, so the sleeper wakes anyway */
}

void bell_ring(struct doorbell *bell, int event_fd)
{
    bell_fence();
    bell_ring_fenced(bell, event_fd);
}

/* ---- Processors ----------------------------------------------------------------- */

int processors_usable(const char *root)
{
    const long long limit = cgroup_milli_cpus(root);
    cpu_set_t set;
    int cores = 1;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cores = CPU_COUNT(&set);
    if (limit == 0 || limit / 1000 >= cores)
        return cores;
    return limit < 1000 ? 1 : (int)(limit / 1000);
}

/* Others see where we are.  Written only if it is news: they read it all the time. */
int wait_say_where(const struct waiter *waiter)
{
    const int here = sched_getcpu();

    if (atomic_load_explicit(&waiter->bell->processor, memory_order_relaxed) != here + 1)
        atomic_store_explicit(&waiter->bell->processor, here + 1, memory_order_relaxed);
    return here;
}

/* Two ranks that hand over to each other look idle half of the time: while they yield, the
 * scheduler leaves them on one processor for seconds.  One that sleeps is woken where nothing runs.
 */
void wait_for_rank(struct wait *wait, int local_rank)
{
    const struct waiter *waiter = wait->waiter;

    if (wait->turns < waiter->spins && wait->turns % TURNS_BETWEEN_LOOKS == 0
        && bell_is_on(&waiter->bells[local_rank], wait_say_where(waiter)))
        wait_sleeps_at_once(wait);
}

/* ---- A wait --------------------------------------------------------------------- */

void waiter_setup(struct waiter *waiter, int ranks)
{
    waiter->spins = ranks <= processors_usable("") ? SPINS_WITH_A_CORE : 0;
    atomic_store(&waiter->yielding, YIELDING_NS);
}

void wait_begin(struct wait *wait, struct waiter *waiter, int64_t deadline)
{
    *wait = (struct wait){ .waiter = waiter, .deadline = deadline };
    wait_say_where(waiter);
}

/* Has somebody to sleep in epoll_wait()?  For sockets at once; for deaths, which are rare, only
 * once a wait is long, since to be woken there takes longer. */
static int wants_poller(const struct wait *wait)
{
    return atomic_load(&wait->waiter->sockets) || (wait->is_long && wait->waiter->ended);
}

/* One thread of the rank sleeps where the sockets are, the others on the bell. */
static void announce(struct wait *wait)
{
    struct waiter *waiter = wait->waiter;

    if (wants_poller(wait) && !atomic_exchange(&waiter->poller, 1)) {
        wait->polls = 1;
        atomic_store(&waiter->bell->polling, 1);
    } else {
        wait->asleep = 1;
        atomic_fetch_add(&waiter->bell->sleepers, 1);
    }
    wait->heard = atomic_load(&waiter->bell->word);
    wait->heard_news = waiter->news ? atomic_load(waiter->news) : 0;
}

static enum wait_turn sleep_in_poll(struct wait *wait, int ms)
{
    struct waiter *waiter = wait->waiter;
    struct epoll_event event;
    uint64_t rings;
    const int ready = epoll_wait(waiter->epoll_fd, &event, 1, ms);

    if (ready > 0 && event.data.ptr == waiter && read(waiter->event_fd, &rings, sizeof rings) < 0
        && errno != EAGAIN)
        return WAIT_LOOK;
    atomic_store(&waiter->bell->polling, 1);
    bell_fence(); /* before the caller's next test, which may be a plain load */
    if (ready > 0 && waiter_saw_end(waiter, event.data.ptr))
        return WAIT_LOOK;
    return ready == 0 ? WAIT_LOOK : WAIT_AGAIN;
}

/* As the kernel has them since 5.16; older headers don't. */
struct two_words {
    uint64_t value, address;
    uint32_t flags, reserved;
};
#define WORD_OF_32_BITS 2
#define NUMBER_OF_FUTEX_WAITV 449 /* on every machine */

static long sleep_on_one(struct wait *wait, int ms)
{
    const struct timespec timeout = { .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L };

    return syscall(SYS_futex, &wait->waiter->bell->word, FUTEX_WAIT, wait->heard, &timeout, NULL,
                   0);
}

static long sleep_on_both(struct wait *wait, int ms)
{
    const struct two_words words[2] = {
        { wait->heard, (uintptr_t)&wait->waiter->bell->word, WORD_OF_32_BITS, 0 },
        { wait->heard_news, (uintptr_t)wait->waiter->news, WORD_OF_32_BITS, 0 },
    };
    struct timespec until;
    long slept;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (ms % 1000) * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    slept = syscall(NUMBER_OF_FUTEX_WAITV, words, 2, 0, &until, CLOCK_MONOTONIC);
    if (slept < 0 && errno == ENOSYS)
        slept = sleep_on_one(wait, ms < LONGEST_DEAF_MS ? ms : LONGEST_DEAF_MS);
    return slept;
}

static enum wait_turn sleep_on_bell(struct wait *wait, int ms)
{
    const struct waiter *waiter = wait->waiter;
    const long slept = waiter->news ? sleep_on_both(wait, ms) : sleep_on_one(wait, ms);
    const int timed_out = slept < 0 && errno == ETIMEDOUT;

    wait->heard = atomic_load(&waiter->bell->word);
    wait->heard_news = waiter->news ? atomic_load(waiter->news) : 0;
    return timed_out ? WAIT_LOOK : WAIT_AGAIN;
}

/* A bell that others keep ringing must not hide that the awaited one is dead. */
static enum wait_turn look_if_due(struct wait *wait, enum wait_turn turn)
{
    const int64_t now = clock_ms();

    if (wait->looked == 0)
        wait->looked = now;
    if (turn != WAIT_LOOK && now - wait->looked < LONGEST_SLEEP_MS)
        return turn;
    wait->looked = now;
    return WAIT_LOOK;
}

/* Another program worked on our processor, or the host took it away: the first will go on, so
 * that it lasts twice as long when it comes again soon. */
static void note_crowd(struct waiter *waiter, int64_t now)
{
    const int64_t until = atomic_load_explicit(&waiter->crowded_until, memory_order_relaxed);
    int64_t length = atomic_load_explicit(&waiter->crowded_for, memory_order_relaxed);

    if (now - until > 4 * length)
        length = CROWDED_NS;
    else if (now > until && length < LONGEST_CROWDED_NS)
        length *= 2;
    atomic_store_explicit(&waiter->crowded_for, length, memory_order_relaxed);
    atomic_store_explicit(&waiter->crowded_until, now + length, memory_order_relaxed);
}

/* Whether the processor has others to run can't be asked: a yield to a program that waits for it
 * comes back at once, too, until our share is used up, and then after that program's slice. */
static void yield(struct wait *wait)
{
    struct waiter *waiter = wait->waiter;
    const int64_t before = clock_ns(CLOCK_MONOTONIC);
    int64_t after;

    if (wait->yields_since == 0)
        wait->yields_since = before;
    sched_yield();
    wait_say_where(waiter);
    after = clock_ns(CLOCK_MONOTONIC);
    if (wait->alone && after - before > YIELD_TO_WORK_NS)
        note_crowd(waiter, after);
    if (after < atomic_load_explicit(&waiter->crowded_until, memory_order_relaxed)
        || (!wait->alone && after - before > YIELD_TO_NOBODY_NS))
        wait->yields++;
    if (wait->yields >= YIELDS
        || after - wait->yields_since
               > atomic_load_explicit(&waiter->yielding, memory_order_relaxed))
        wait->tired = after;
}

enum wait_turn wait_turn(struct wait *wait)
{
    const struct waiter *waiter = wait->waiter;
    enum wait_turn turn;
    int ms;

    if (wait->turns < waiter->spins) {
        wait->turns++;
        cpu_relax();
        return WAIT_AGAIN;
    }
    if (!wait->tired) {
        yield(wait);
        return WAIT_AGAIN;
    }
    if (wait->asleep && wants_poller(wait)
        && !atomic_load(&wait->waiter->poller)) { /* who slept where the sockets are has left */
        atomic_fetch_sub(&wait->waiter->bell->sleepers, 1);
        wait->asleep = 0;
    }
    if (!wait->asleep && !wait->polls) {
        announce(wait);
        return WAIT_AGAIN;
    }
    ms = time_left_ms(wait->deadline, wait->soon ? FIRST_SLEEP_MS : LONGEST_SLEEP_MS);
    if (ms == 0)
        return WAIT_OVER;
    if (!wait->polls && !wait->is_long && waiter->ended && ms > SHORT_SLEEP_MS)
        ms = SHORT_SLEEP_MS;
    wait->soon = 0;
    turn = wait->polls ? sleep_in_poll(wait, ms) : sleep_on_bell(wait, ms);
    wait_say_where(waiter);
    wait->is_long |= turn == WAIT_LOOK;
    return look_if_due(wait, turn);
}

/* It would have been better to stay awake if the sleep was no longer than that.  Who slept since
 * somebody needed the processor, or at once since it was told to, learns nothing about this. */
static void learn(struct waiter *waiter, const struct wait *wait)
{
    const int64_t slept = clock_ns(CLOCK_MONOTONIC) - wait->tired;
    int64_t yielding = atomic_load_explicit(&waiter->yielding, memory_order_relaxed);

    yielding = slept > LONGEST_YIELDING_NS      ? YIELDING_NS
               : yielding < LONGEST_YIELDING_NS ? 2 * yielding
                                                : yielding;
    atomic_store_explicit(&waiter->yielding, yielding, memory_order_relaxed);
}

void wait_anew(struct wait *wait)
{
    if (wait->asleep)
        atomic_fetch_sub(&wait->waiter->bell->sleepers, 1);
    wait->asleep = wait->turns = wait->yields = 0;
    wait->yields_since = wait->tired = 0;
}

void wait_end(struct wait *wait)
{
    struct waiter *waiter = wait->waiter;

    if (wait->asleep && wait->yields_since && wait->yields < YIELDS)
        learn(waiter, wait);
    if (wait->asleep)
        atomic_fetch_sub(&waiter->bell->sleepers, 1);
    if (wait->polls) {
        atomic_store(&waiter->bell->polling, 0);
        atomic_store(&waiter->poller, 0);
        bell_ring(waiter->bell, waiter->event_fd); /* another sleeper takes the duty */
    }
    wait->asleep = wait->polls = 0;
}
