/* SPDX-License-Identifier: Apache-2.0 */
/* waiter.h - how a rank waits for its peers: spin, then yield, then sleep.
 *
 * Every rank owns one doorbell, in memory that its node's ranks share.  Who
 * changes something that a rank may be waiting for rings that rank's bell;
 * ringing costs two loads while nobody sleeps.  A wait is written as
 *
 *     struct wait w;
 *     wait_begin(&w, waiter, deadline);
 *     while (!ready() && (turn = wait_turn(&w)) != WAIT_OVER)
 *         ...
 *     wait_end(&w);
 *
 * The condition is tested between any two turns, so it needs no lock: a turn
 * announces the sleep, the caller tests once more, and only the next turn
 * sleeps, on the bell as it was before that test. */
#ifndef RUNTIME_SHM_WAITER_H
#define RUNTIME_SHM_WAITER_H

#include <stdatomic.h>
#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
#define CT_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CT_THREAD_SANITIZER 1
#endif
#endif

#define CACHE_PAIR 128 /* the prefetcher takes two lines of 64 bytes: one writer per pair */

struct doorbell {
    _Alignas(CACHE_PAIR) _Atomic uint32_t word; /* the futex; counts rings */
    _Atomic uint32_t sleepers;                  /* threads of the owner asleep on word */
    _Atomic uint32_t polling;                   /* a thread of the owner sleeps in epoll_wait() */
    _Atomic int processor;                      /* 1 + where the owner was last; 0: nowhere yet */
};

void bell_ring(struct doorbell *bell, int event_fd);
/* The same for several bells: the fence once, then each. */
void bell_fence(void);
void bell_wake(struct doorbell *bell, int event_fd); /* somebody sleeps */
static inline void bell_ring_fenced(struct doorbell *bell, int event_fd)
{
    if (atomic_load_explicit(&bell->sleepers, memory_order_relaxed)
        || atomic_load_explicit(&bell->polling, memory_order_relaxed))
        bell_wake(bell, event_fd);
}

/* After an atomic_store() of the news, which needs no fence before a look of the same strength. */
static inline void bell_ring_stored(struct doorbell *bell, int event_fd)
{
    if (atomic_load(&bell->sleepers) || atomic_load(&bell->polling))
        bell_wake(bell, event_fd);
}

static inline int bell_is_on(const struct doorbell *bell, int processor)
{
    return processor >= 0
           && atomic_load_explicit(&bell->processor, memory_order_relaxed) == processor + 1;
}

/* One rank's way of waiting; its threads share it. */
struct waiter {
    struct doorbell *bell;
    const struct doorbell *bells;  /* of all its ranks; NULL: none shares memory */
    int event_fd;                  /* wakes the thread that sleeps in epoll_wait() */
    int epoll_fd;                  /* holds event_fd and the sockets */
    _Atomic int sockets;           /* are there any?  then somebody has to sleep in epoll_wait() */
    _Atomic int poller;            /* a thread has that duty */
    int spins;                     /* before yielding */
    _Atomic int64_t crowded_until; /* another program seems to work on our processor */
    _Atomic int64_t crowded_for;
    _Atomic int64_t yielding; /* ns, before a wait sleeps */
    /* Another futex that wakes: ctrun's, for all ranks of the host; NULL: none. */
    _Atomic uint32_t *news;
    /* Where no ctrun tells of deaths: a flag for each process that epoll_fd watches, set when it
     * ended, and how often one was.  Then a long wait sleeps in epoll_wait() too.  NULL: none. */
    _Atomic unsigned char *ended;
    int watched; /* flags */
    _Atomic unsigned ends;
};

/* Looks at what is waited for, before a wait begins: as long as a hand-over between two processors
 * takes. */
#define LOOKS_BEFORE_WAIT 100

enum wait_turn {
    WAIT_AGAIN,
    WAIT_LOOK, /* a whole sleep passed without a ring: look whether the peer still lives */
    WAIT_OVER  /* the deadline passed */
};

struct wait {
    struct waiter *waiter;
    int64_t deadline;
    int turns;
    int64_t yields_since; /* 0: not yet */
    int yields;           /* that count */
    int alone;            /* the caller knows of nobody who is awaited and needs this processor */
    int64_t tired;        /* when it had yielded enough, and sleeps; 0: not yet */
    int64_t looked;       /* when the caller was last told to look, or began to sleep */
    uint32_t heard;       /* the bell's word before the caller's last test */
    uint32_t heard_news;
    int asleep;  /* announced as a sleeper */
    int polls;   /* announced as the poller */
    int is_long; /* it has slept for a while */
    int soon;    /* the first sleep is a short one: the caller wants to look */
};

/* ranks: how many run on this host; decides how long spinning can pay. */
void waiter_setup(struct waiter *waiter, int ranks);

/* One of the flags is what epoll_wait() gave: 1, and it is set. */
static inline int waiter_saw_end(struct waiter *waiter, const void *what)
{
    _Atomic unsigned char *const flag = (_Atomic unsigned char *)(uintptr_t)what;

    if (!waiter->ended || flag < waiter->ended || flag >= waiter->ended + waiter->watched)
        return 0;
    atomic_store(flag, 1);
    atomic_fetch_add(&waiter->ends, 1);
    return 1;
}

void wait_begin(struct wait *wait, struct waiter *waiter, int64_t deadline);
/* What is waited for needs this processor: to spin is in vain. */
static inline void wait_for_processor(struct wait *wait)
{
    wait->turns = wait->waiter->spins;
}
static inline void wait_sleeps_at_once(struct wait *wait)
{
    wait->turns = wait->waiter->spins;
    wait->tired = 1;
}
static inline int wait_is_about_to_yield(const struct wait *wait)
{
    return wait->turns >= wait->waiter->spins && !wait->tired;
}
enum wait_turn wait_turn(struct wait *wait);
/* A part of what is waited for has come: the next one may be near. */
void wait_anew(struct wait *wait);
void wait_end(struct wait *wait);

/* cpu_count.c */
/* That this process may use: affinity and the control groups' share, in whole ones, at least 1.
 * root: "" for this machine. */
int processors_usable(const char *root);
/* Tells the others on which processor we are, as seldom as that changes, and returns it. */
int wait_say_where(const struct waiter *waiter);
/* Before each turn: a rank of the host is waited for, which may need this processor.  Then we spin
 * no longer, and sleep. */
void wait_for_rank(struct wait *wait, int local_rank);

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
