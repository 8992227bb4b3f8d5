/* SPDX-License-Identifier: Apache-2.0 */
/* waiter.c - how a wait spins, yields and sleeps, and the doorbells that end a sleep.
 *
 * If each rank has a core, a rank notices another rank's write within 0.06 us while it spins, but
 * needs 3 to 20 us to wake from a futex.  So a wait first spins.  If there are more ranks than
 * cores, a spinning rank keeps the awaited rank off the core (for 4 ms, a scheduler tick), so there
 * a wait yields at once.
 *
 * Sleeping is contagious.  Waking an idle virtual processor took 50 to 600 us here.  A rank that
 * waits for a rank that is being woken, and falls asleep within that time, must itself be woken
 * next: hundreds of calls in a row took 350 us each.  So a wait stays awake for longer than that:
 * 500 us, and up to 2 ms as long as sleeps turn out to be short.  But if the awaited rank or
 * another program needs the same processor, yields only take its time and use up our share.  In
 * this case a wait sleeps after a few dozen yields: a busy processor wakes us at once.
 *
 * No sleep is longer than 100 ms, so that the death of a peer is noticed even if no doorbell rings.
 *
 * Under ctrun a sleeping thread waits for two words: its doorbell, which peers ring, and the
 * notices of the control page, which ctrun raises once for all ranks of the host.  Before Linux
 * 5.16 a thread can sleep on one word only; it then sleeps on its doorbell and checks the notices
 * every 5 ms. */
#include "runtime/shm/waiter.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/util/clock.h"
#include "runtime/util/cpu_set.h"
#include "runtime/util/log.h"

#define LONGEST_SLEEP_MS 100 /* a death without a ring is noticed within this time */
#define FIRST_SLEEP_MS 2     /* limit of the first sleep if the caller wants to look soon */
/* Longest sleep of a thread that can sleep only on the doorbell.  Then it checks the notices. */
#define LONGEST_ON_ONE_MS 5
/* Longest sleep on the doorbell while a wait is not yet long: deaths wake only the
 * thread in epoll_wait(). */
#define SHORT_SLEEP_MS 1

#define WAKE_TRIES 1000 /* to send one datagram */

/* Looks that found the awaited rank on our processor, after which our rank moves. */
#define TURNS_TOGETHER 64
/* Turns of a wait where ranks share processors, if the awaited rank runs on another one.  They take
 * up to 4 us, as long as a copy of 64 KiB. */
#define BRIEF_SPINS 64
#define SPINS_WITH_A_CORE 2000 /* about 50 us; a write reaches another core sooner */

/* How long a wait yields before it sleeps.  This is longer than it takes to wake a processor, so
 * that sleep does not spread (see the top of this file). */
#define YIELDING_NS 500000
#define LONGEST_YIELDING_NS 2000000
/* How often a wait yields where another rank needs our processor: enough for each of a dozen ranks
 * to run a few times. */
#define YIELDS 40
/* The time of a yield shows what ran on the processor.  Nothing ran if the yield returned within
 * YIELD_TO_NOBODY_NS.  If it took YIELD_TO_WORK_NS or longer, a busy program ran: a rank would have
 * slept or yielded sooner. */
#define YIELD_TO_NOBODY_NS 1000
#define YIELD_TO_WORK_NS 100000
/* How long such a program is assumed to continue, at first and after it was seen repeatedly. */
#define CROWDED_NS 2000000
#define LONGEST_CROWDED_NS 256000000

/* ---- Doorbells ------------------------------------------------------------------ */

/* Orders the caller's change before its check for sleepers.  The sleeper orders its announcement
 * before its last test of what it waits for.  So at least one of the two sees what the other wrote.
 * ThreadSanitizer does not understand fences; there an atomic read-modify-write does the same. */
void bell_fence(void)
{
#ifdef CT_THREAD_SANITIZER
    static _Atomic int word;

    atomic_fetch_add(&word, 1);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

ct_status wake_socket_open(int *wake_fd)
{
    const struct sockaddr_un any = { .sun_family = AF_UNIX }; /* the kernel chooses a name */

    *wake_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*wake_fd >= 0
        && bind(*wake_fd, (const struct sockaddr *)&any, offsetof(struct sockaddr_un, sun_path))
               == 0)
        return CT_OK;
    return ct_fail(CT_ERR_SYSTEM, "a unix datagram socket: %s%s", strerror(errno),
                   errno == EMFILE ? " (ulimit -n)" : "");
}

void wake_socket_name(int wake_fd, struct doorbell *bell)
{
    struct sockaddr_un own;
    socklen_t size = sizeof own;
    /* An abstract name follows a 0 byte. */
    const size_t head = offsetof(struct sockaddr_un, sun_path) + 1;

    memset(bell->wake_name, 0, sizeof bell->wake_name);
    if (getsockname(wake_fd, (struct sockaddr *)&own, &size) == 0 && size > head
        && size - head < sizeof bell->wake_name)
        memcpy(bell->wake_name, own.sun_path + 1, size - head);
}

/* Sends a datagram to the wake socket of the doorbell's owner.  The kernel refuses the datagram in
 * two cases: while the owner has not read earlier datagrams, which wake it as well, or while too
 * many of our datagrams are unread, which takes hundreds of sleeping ranks. */
static void send_wake(const struct doorbell *bell, int wake_fd)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    const size_t length = strnlen(bell->wake_name, sizeof bell->wake_name);
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);

    memcpy(to.sun_path + 1, bell->wake_name, length);
    for (int tries = 0; tries < WAKE_TRIES; tries++) {
        if (sendto(wake_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&to, size)
                == 1
            || errno != EAGAIN)
            return;
        sched_yield();
    }
}

void bell_wake(struct doorbell *bell, int wake_fd)
{
    if (atomic_load_explicit(&bell->sleepers, memory_order_relaxed)) {
        atomic_fetch_add(&bell->word, 1);
        syscall(SYS_futex, &bell->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
    /* as in bell_ring_stored(), which did not look at `polling` if it saw sleepers */
    if (atomic_load(&bell->polling) && atomic_exchange(&bell->polling, 0))
        send_wake(bell, wake_fd);
}

void bell_ring(struct doorbell *bell, int wake_fd)
{
    bell_fence();
    bell_ring_stored(bell, wake_fd);
}

/* ---- Processors ----------------------------------------------------------------- */

/* Writes the number only when it has changed, since the other ranks read it all the time. */
int wait_note_processor(const struct waiter *waiter)
{
    const int here = sched_getcpu();

    if (atomic_load_explicit(&waiter->bell->processor, memory_order_relaxed) != here + 1)
        atomic_store_explicit(&waiter->bell->processor, here + 1, memory_order_relaxed);
    return here;
}

/* Tells the other ranks that this rank gives up its processor. */
static void wait_note_absence(const struct waiter *waiter)
{
    const int seen = atomic_load_explicit(&waiter->bell->processor, memory_order_relaxed);

    if (seen > 0)
        atomic_store_explicit(&waiter->bell->processor, -seen, memory_order_relaxed);
}

static int bell_runs_apart(const struct doorbell *bell, int processor)
{
    const int seen = atomic_load_explicit(&bell->processor, memory_order_relaxed);

    return seen > 0 && seen != processor + 1;
}

static int is_taken(const struct waiter *waiter, int processor)
{
    for (int i = 0; i < waiter->ranks; i++)
        if (&waiter->bells[i] != waiter->bell && bell_is_on(&waiter->bells[i], processor))
            return 1;
    return 0;
}

/* Sets the mask back to `before`.  The kernel adds new CPUs of the control group to a mask that was
 * never set, but not to a mask that was set.  So a mask that had all CPUs is set to all CPUs. */
static void restore_mask(const struct cpus *before)
{
    struct cpus all, now;

    memset(&all, 0xff, sizeof all);
    if (cpus_enter(&all) < 0 || cpus_of_process(0, &now) < 0
        || memcmp(&now, before, sizeof now) != 0)
        cpus_enter(before);
}

/* If two ranks wait for each other in turns on one processor, only one of them is runnable at a
 * time, so the scheduler sees nothing to balance for 10 ms and longer.  A rank publishes its new
 * processor before it moves, so that no other rank chooses the same one. */
void waiter_stand_apart(const struct waiter *waiter)
{
    struct cpus before, one = { { 0 } };
    int cpu;

    if (!waiter->bells || waiter->spins == 0)
        return;
    cpu = wait_note_processor(waiter);
    bell_fence();
    if (!is_taken(waiter, cpu) || cpus_of_process(0, &before) < 0)
        return;
    cpu = cpus_next(&before, 0);
    while (cpu >= 0 && is_taken(waiter, cpu))
        cpu = cpus_next(&before, cpu + 1);
    if (cpu < 0)
        return;
    atomic_store_explicit(&waiter->bell->processor, cpu + 1, memory_order_relaxed);
    cpus_add(&one, cpu);
    if (cpus_enter(&one) == 0)
        restore_mask(&before);
    wait_note_processor(waiter);
}

/* While two ranks that wait for each other in turns yield, the scheduler leaves both on one
 * processor for seconds, but it wakes a sleeping rank on an idle processor, in most cases. */
void wait_look_at_rank(struct wait *wait, int local_rank)
{
    struct waiter *const waiter = wait->waiter;
    const struct doorbell *awaited = &waiter->bells[local_rank];
    const int here = wait_note_processor(waiter);

    if (waiter->spins == 0)
        wait->other_runs = bell_runs_apart(awaited, here);
    else if (bell_is_on(awaited, here) && ++waiter->together % TURNS_TOGETHER == 0)
        waiter_stand_apart(waiter);
    else if (bell_is_on(awaited, here) && !atomic_load(&waiter->sockets))
        wait_sleeps_at_once(wait); /* a thread wakes later from epoll_wait() */
}

/* ---- A wait --------------------------------------------------------------------- */

void waiter_setup(struct waiter *waiter, int has_processors)
{
    waiter->spins = has_processors ? SPINS_WITH_A_CORE : 0;
    atomic_store(&waiter->yielding, YIELDING_NS);
}

void wait_begin(struct wait *wait, struct waiter *waiter, int64_t deadline)
{
    *wait = (struct wait){ .waiter = waiter, .deadline = deadline };
    wait_note_processor(waiter);
}

/* True if one thread of the rank has to sleep in epoll_wait().  Sockets need this at once.  Deaths
 * are rare, and waking a thread in epoll_wait() takes longer, so for deaths a thread does this only
 * in a long wait. */
static int wants_poller(const struct wait *wait)
{
    return atomic_load(&wait->waiter->sockets) || (wait->is_long && wait->waiter->ended);
}

/* Announces that this thread will sleep.  One thread of the rank sleeps in epoll_wait(), all other
 * threads sleep on the doorbell.  The fence is for the caller's next test, which may be a plain
 * load. */
static void announce_sleep(struct wait *wait)
{
    struct waiter *waiter = wait->waiter;

    if (wants_poller(wait) && !atomic_exchange(&waiter->poller, 1)) {
        wait->polls = 1;
        atomic_store(&waiter->bell->polling, 1);
    } else {
        wait->asleep = 1;
        atomic_fetch_add(&waiter->bell->sleepers, 1);
    }
    wait->seen_rings = atomic_load(&waiter->bell->word);
    wait->seen_notices = waiter->notices ? atomic_load(waiter->notices) : 0;
    bell_fence();
}

static enum wait_turn sleep_in_poll(struct wait *wait, int ms)
{
    struct waiter *waiter = wait->waiter;
    struct epoll_event event;
    char ring;
    const int ready = epoll_wait(waiter->epoll_fd, &event, 1, ms);

    if (ready > 0 && event.data.ptr == waiter && read(waiter->wake_fd, &ring, sizeof ring) < 0
        && errno != EAGAIN)
        return WAIT_LOOK;
    atomic_store(&waiter->bell->polling, 1);
    bell_fence(); /* as in announce_sleep() */
    if (ready > 0 && waiter_saw_end(waiter, event.data.ptr))
        return WAIT_LOOK;
    return ready == 0 ? WAIT_LOOK : WAIT_AGAIN;
}

/* Like struct futex_waitv of Linux 5.16, which older headers lack. */
struct two_words {
    uint64_t value, address;
    uint32_t flags, reserved;
};
#define WORD_OF_32_BITS 2
#define NUMBER_OF_FUTEX_WAITV 449 /* the same on all architectures */

static long sleep_on_one(struct wait *wait, int ms)
{
    const struct timespec timeout = { .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L };

    return syscall(SYS_futex, &wait->waiter->bell->word, FUTEX_WAIT, wait->seen_rings, &timeout,
                   NULL, 0);
}

static long sleep_on_both(struct wait *wait, int ms)
{
    const struct two_words words[2] = {
        { wait->seen_rings, (uintptr_t)&wait->waiter->bell->word, WORD_OF_32_BITS, 0 },
        { wait->seen_notices, (uintptr_t)wait->waiter->notices, WORD_OF_32_BITS, 0 },
    };
    static atomic_flag said = ATOMIC_FLAG_INIT;
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
    /* ENOSYS comes from an old kernel.  A filter of system calls (seccomp) may return EPERM. */
    if (slept < 0 && errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT) {
        log_missing(&said, "futex_waitv()", "a waiting rank looks for deaths every 5 ms");
        slept = sleep_on_one(wait, ms < LONGEST_ON_ONE_MS ? ms : LONGEST_ON_ONE_MS);
    }
    return slept;
}

static enum wait_turn sleep_on_bell(struct wait *wait, int ms)
{
    const struct waiter *waiter = wait->waiter;
    const long slept = waiter->notices ? sleep_on_both(wait, ms) : sleep_on_one(wait, ms);
    const int timed_out = slept < 0 && errno == ETIMEDOUT;

    wait->seen_rings = atomic_load(&waiter->bell->word);
    wait->seen_notices = waiter->notices ? atomic_load(waiter->notices) : 0;
    return timed_out ? WAIT_LOOK : WAIT_AGAIN;
}

/* Returns WAIT_LOOK at least every LONGEST_SLEEP_MS: other peers may keep ringing the doorbell
 * although the awaited peer is dead. */
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

/* Notes that another program ran on our processor, or that the hypervisor took the processor away.
 * Such a program is assumed to continue, for twice as long if it is seen again soon. */
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

/* Yields once and measures how long that takes.  No system call tells whether other threads want
 * our processor.  Even if a program waits for the processor, a yield returns at once until our
 * share of the time is used up; the next yield returns after that program's time slice. */
static void wait_yield(struct wait *wait)
{
    struct waiter *waiter = wait->waiter;
    const int64_t before = clock_ns(CLOCK_MONOTONIC);
    int64_t after;

    if (wait->yields_since == 0)
        wait->yields_since = before;
    if (waiter->spins == 0)
        wait_note_absence(waiter);
    sched_yield();
    wait_note_processor(waiter);
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

    if (wait->turns < waiter->spins
        || (wait->other_runs && !wait->tired && wait->turns < BRIEF_SPINS)) {
        wait->turns++;
        cpu_relax();
        return WAIT_AGAIN;
    }
    if (!wait->tired) {
        wait_yield(wait);
        return WAIT_AGAIN;
    }
    if (wait->asleep
        && wants_poller(wait)
        /* the thread that slept in epoll_wait() has left */
        && !atomic_load(&wait->waiter->poller)) {
        atomic_fetch_sub(&wait->waiter->bell->sleepers, 1);
        wait->asleep = 0;
    }
    if (!wait->asleep && !wait->polls) {
        announce_sleep(wait);
        return WAIT_AGAIN;
    }
    ms = time_left_ms(wait->deadline, wait->soon ? FIRST_SLEEP_MS : LONGEST_SLEEP_MS);
    if (ms == 0)
        return WAIT_OVER;
    if (!wait->polls && !wait->is_long && waiter->ended && ms > SHORT_SLEEP_MS)
        ms = SHORT_SLEEP_MS;
    wait->soon = 0;
    wait_note_absence(waiter);
    turn = wait->polls ? sleep_in_poll(wait, ms) : sleep_on_bell(wait, ms);
    wait_note_processor(waiter);
    wait->is_long |= turn == WAIT_LOOK;
    return look_if_due(wait, turn);
}

/* Adapts the time for which waits yield.  If the sleep was shorter than LONGEST_YIELDING_NS, it
 * would have been better to stay awake.  The caller skips sleeps that began because another thread
 * needed the processor or because a caller asked to sleep at once. */
static void learn_from_sleep(struct waiter *waiter, const struct wait *wait)
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
        learn_from_sleep(waiter, wait);
    if (wait->asleep)
        atomic_fetch_sub(&waiter->bell->sleepers, 1);
    if (wait->polls) {
        atomic_store(&waiter->bell->polling, 0);
        atomic_store(&waiter->poller, 0);
        bell_ring(waiter->bell, waiter->wake_fd); /* another sleeping thread becomes the poller */
    }
    wait->asleep = wait->polls = 0;
}
