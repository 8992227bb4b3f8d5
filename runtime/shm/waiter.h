/* SPDX-License-Identifier: Apache-2.0 */
/* waiter.h - how a rank waits for its peers: it spins, then yields, then sleeps.
 *
 * Each rank has a doorbell in the memory that the ranks of its host share.  A rank that changes
 * something which another one may be waiting for rings that one's doorbell.  Ringing costs two
 * loads while no thread sleeps.  A wait is written as
 *
 *     struct wait w;
 *     wait_begin(&w, waiter, deadline);
 *     while (!ready() && (turn = wait_turn(&w)) != WAIT_OVER)
 *         ...
 *     wait_end(&w);
 *
 * The caller tests the condition between any two turns, so it needs no lock: one turn announces
 * the sleep, the caller tests once more, and only the next turn sleeps, provided that the
 * doorbell has not rung since before that test. */
#ifndef RUNTIME_SHM_WAITER_H
#define RUNTIME_SHM_WAITER_H

#include <stdatomic.h>
#include <stdint.h>

#include "runtime/util/error.h"

#if defined(__SANITIZE_THREAD__)
#define CT_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CT_THREAD_SANITIZER 1
#endif
#endif

#define CACHE_PAIR 128 /* the prefetcher loads pairs of 64-byte lines: one writer for each */

struct doorbell {
    _Alignas(CACHE_PAIR) _Atomic uint32_t word; /* the futex; a count of rings */
    _Atomic uint32_t sleepers;                  /* how many threads of the owner sleep on word */
    _Atomic uint32_t polling;                   /* a thread of the owner sleeps in epoll_wait() */
    _Atomic int processor; /* 1 + the processor on which the owner was last; 0: not known */
    char wake_name[8];     /* of the owner's wake socket, an abstract one; a 0 ends it */
};

/* A rank that sleeps in epoll_wait() is woken by a datagram to its wake socket, whose name stands
 * in its doorbell.  So no rank needs a descriptor of each other one.  What a stranger sends there
 * wakes the rank for nothing. */
ct_status wake_socket_open(int *wake_fd);
void wake_socket_name(int wake_fd, struct doorbell *bell); /* notes its name there */

/* wake_fd: the caller's own wake socket, from which it sends the datagram. */
void bell_ring(struct doorbell *bell, int wake_fd);
/* The same for several doorbells: the fence once, then each doorbell. */
void bell_fence(void);
void bell_wake(struct doorbell *bell, int wake_fd); /* a thread sleeps */
/* After bell_fence(), or an atomic_store() of what the sleeper waits for: sequentially consistent
 * loads need no fence after that. */
static inline void bell_ring_stored(struct doorbell *bell, int wake_fd)
{
    if (atomic_load(&bell->sleepers) || atomic_load(&bell->polling))
        bell_wake(bell, wake_fd);
}

static inline int bell_is_on(const struct doorbell *bell, int processor)
{
    return processor >= 0
           && atomic_load_explicit(&bell->processor, memory_order_relaxed) == processor + 1;
}

/* What one rank needs to wait; its threads share it. */
struct waiter {
    struct doorbell *bell;
    const struct doorbell *bells; /* of all ranks of the host; NULL: no memory is shared */
    int wake_fd;                  /* wakes the thread that sleeps in epoll_wait() */
    int epoll_fd;                 /* holds wake_fd and the sockets */
    _Atomic int sockets; /* there are sockets, so a waiting thread has to sleep in epoll_wait() */
    _Atomic int poller;  /* a thread sleeps there, or is about to */
    int spins;           /* how many turns a wait spins before it yields */
    _Atomic int64_t crowded_until; /* until when another program is taken to run on our processor */
    _Atomic int64_t crowded_for;
    _Atomic int64_t yielding; /* ns that a wait yields before it sleeps */
    /* Another futex, which ctrun raises with each notice to the ranks of the host; NULL: there
     * is none. */
    _Atomic uint32_t *notices;
    /* Where there is no ctrun to report deaths: a flag for each process that epoll_fd watches,
     * set when the process has ended, and a count of those.  A long wait then sleeps in
     * epoll_wait() too.  NULL: there are none. */
    _Atomic unsigned char *ended;
    int watched; /* number of flags */
    _Atomic unsigned ends;
};

/* How often a wait tests its condition before it begins: about as long as a cache line takes
 * from one processor to another. */
#define LOOKS_BEFORE_WAIT 100

enum wait_turn {
    WAIT_AGAIN,
    WAIT_LOOK, /* a whole sleep passed without a ring: the caller checks the peer */
    WAIT_OVER  /* the deadline passed */
};

struct wait {
    struct waiter *waiter;
    int64_t deadline;
    int turns;
    int64_t yields_since; /* 0: it has not yielded yet */
    int yields;           /* how many of its yields count */
    int alone;            /* no rank that the caller waits for was seen on this processor */
    int64_t tired;        /* when it had yielded enough; from then on it sleeps; 0: not yet */
    int64_t looked;       /* when it last returned WAIT_LOOK, or began to sleep */
    uint32_t seen_rings;  /* the doorbell's count before the caller's last test */
    uint32_t seen_notices;
    int asleep;  /* it is counted in sleepers */
    int polls;   /* it is the poller */
    int is_long; /* it has slept for a while */
    int soon;    /* the first sleep is a short one: the caller wants to look */
};

/* has_processors: the host has a processor for each of its ranks, so spinning can pay. */
void waiter_setup(struct waiter *waiter, int has_processors);

/* `what` is the pointer of an epoll event.  1: it is one of the flags in ->ended, and was set. */
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
/* The awaited rank needs this processor, so the wait does not spin. */
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
/* Call it when a part has come and the next part may be near: the wait spins again. */
void wait_anew(struct wait *wait);
void wait_end(struct wait *wait);

/* At the end of init, while nothing waits: if another rank is on our processor although the host
 * has a processor for each, the calling thread moves to a processor without a rank.  Its affinity
 * mask stays the same.  ranks: how many have a doorbell. */
void waiter_stand_apart(const struct waiter *waiter, int ranks);
/* Writes the number of our processor beside the doorbell if it has changed, and returns it. */
int wait_note_processor(const struct waiter *waiter);
/* To be called before each turn of a wait for a rank of this host.  If that rank is on our
 * processor, the wait sleeps at once. */
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
