/* SPDX-License-Identifier: Apache-2.0 */
/* waiter.h - how a rank waits for its peers: it spins, then yields, then sleeps.
 *
 * Each rank has a doorbell in the memory that the ranks of its host share.  A rank that changes
 * something for which another rank may be waiting rings that rank's doorbell.  Ringing costs two
 * loads while no thread sleeps.  A wait is written as
 *
 *     struct wait w;
 *     wait_begin(&w, waiter, deadline);
 *     while (!ready() && (turn = wait_turn(&w)) != WAIT_OVER)
 *         ...
 *     wait_end(&w);
 *
 * The caller tests the condition between any two turns, so it needs no lock.  One turn announces
 * the sleep, then the caller tests once more, and only the next turn sleeps, provided that the
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

/* The prefetcher loads pairs of 64-byte lines, so each pair has only one writer. */
#define CACHE_PAIR 128

struct doorbell {
    _Alignas(CACHE_PAIR) _Atomic uint32_t word; /* the futex: a count of rings */
    _Atomic uint32_t sleepers;                  /* how many threads of the owner sleep on word */
    _Atomic uint32_t polling;                   /* true if the owner has a thread in epoll_wait() */
    /* 1 + the processor on which the owner was last seen, negative while the owner yields or
     * sleeps; 0 if unknown. */
    _Atomic int processor;
    /* Name of the owner's wake socket in the abstract name space, ended by a 0. */
    char wake_name[8];
};

/* A rank that sleeps in epoll_wait() is woken by a datagram to its wake socket.  The rank's
 * doorbell holds the name of that socket, so no rank needs a descriptor for each other rank.  A
 * datagram from an unrelated process only wakes the rank in vain. */
ct_status wake_socket_open(int *wake_fd);
void wake_socket_name(int wake_fd, struct doorbell *bell); /* notes the socket's name in bell */

/* Wakes the owner's threads if they sleep.  wake_fd: the caller's own wake socket, from which the
 * datagram is sent. */
void bell_ring(struct doorbell *bell, int wake_fd);
/* To ring several doorbells: bell_fence() once, then bell_ring_stored() for each doorbell. */
void bell_fence(void);
void bell_wake(struct doorbell *bell, int wake_fd); /* wakes the sleeping threads */
/* Like bell_ring(), but without the fence.  To be called after bell_fence(), or after an
 * atomic_store() of what the sleeper waits for: the sequentially consistent loads here need no
 * fence after such a store. */
static inline void bell_ring_stored(struct doorbell *bell, int wake_fd)
{
    if (atomic_load(&bell->sleepers) || atomic_load(&bell->polling))
        bell_wake(bell, wake_fd);
}

static inline int bell_is_on(const struct doorbell *bell, int processor)
{
    const int seen = atomic_load_explicit(&bell->processor, memory_order_relaxed);

    return processor >= 0 && (seen == processor + 1 || seen == -(processor + 1));
}

/* The state that one rank needs for its waits; the rank's threads share it. */
struct waiter {
    struct doorbell *bell;
    const struct doorbell *bells; /* of all ranks of the host; NULL if no memory is shared */
    int wake_fd;                  /* wakes the thread that sleeps in epoll_wait() */
    int epoll_fd;                 /* holds wake_fd and the sockets */
    _Atomic int sockets; /* true if there are sockets, so a thread must sleep in epoll_wait() */
    _Atomic int poller;  /* true if a thread sleeps in epoll_wait() or is about to */
    int spins;           /* how many turns a wait spins before it yields */
    /* Another program is assumed to run on our processor until then, in ns of CLOCK_MONOTONIC. */
    _Atomic int64_t crowded_until;
    _Atomic int64_t crowded_for;
    _Atomic int64_t yielding; /* ns for which a wait yields before it sleeps */
    /* Another futex, which ctrun raises with each notice to the ranks of the host;
     * NULL without ctrun. */
    _Atomic uint32_t *notices;
    /* Used where no ctrun reports deaths; else NULL.  One flag for each process that epoll_fd
     * watches, set when the process has ended; `ends` counts the flags that are set.  A long wait
     * then sleeps in epoll_wait(), too. */
    _Atomic unsigned char *ended;
    int watched; /* number of flags in `ended` */
    _Atomic unsigned ends;
    int ranks;                 /* how many ranks have a doorbell in `bells` */
    _Atomic unsigned together; /* how many looks found the awaited rank on our processor */
};

/* How often a caller polls its condition before it begins a wait: for about as long as a cache line
 * takes from one processor to another. */
#define LOOKS_BEFORE_WAIT 100

enum wait_turn {
    WAIT_AGAIN,
    WAIT_LOOK, /* a whole sleep passed without a ring; the caller checks the peer */
    WAIT_OVER  /* the deadline passed */
};

struct wait {
    struct waiter *waiter;
    int64_t deadline;
    int turns;
    int other_runs;       /* true if the awaited rank runs on another processor */
    int64_t yields_since; /* ns when the wait first yielded; 0 if it has not yielded yet */
    int yields;           /* how many of the yields count towards YIELDS */
    int alone;            /* true if no awaited rank was seen on this processor */
    int64_t tired;        /* ns when the wait had yielded enough and began to sleep; 0 before */
    int64_t looked;       /* ms when the wait last returned WAIT_LOOK or began to sleep */
    uint32_t seen_rings;  /* the doorbell's count before the caller's last test */
    uint32_t seen_notices;
    int asleep;  /* true if the wait is counted in the doorbell's sleepers */
    int polls;   /* true if the wait sleeps in epoll_wait() */
    int is_long; /* true if the wait has slept for a while */
    int soon;    /* true if the first sleep must be short: the caller wants to look */
};

/* has_processors: the host has a processor for each of its ranks, so spinning can pay. */
void waiter_setup(struct waiter *waiter, int has_processors);

/* Returns 1 and sets the flag if `what`, the pointer of an epoll event, is one of the flags in
 * waiter->ended; else returns 0. */
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
/* Skips the spinning, since the awaited rank needs this processor. */
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
/* To be called when a part of the data has come and the next part may come soon: the
 * wait spins again. */
void wait_anew(struct wait *wait);
void wait_end(struct wait *wait);

/* Moves the calling thread to a processor without a rank, if another rank is on our processor
 * although the host has a processor for each rank.  The thread's affinity mask stays the same. */
void waiter_stand_apart(const struct waiter *waiter);
/* Writes the number of our processor into the rank's doorbell if it has changed, and
 * returns that number. */
int wait_note_processor(const struct waiter *waiter);
/* Spinning turns between two checks of the processor on which the awaited rank is.  Another core
 * writes the cache line that tells this. */
#define TURNS_BETWEEN_LOOKS 64

void wait_look_at_rank(struct wait *wait, int local_rank);
/* To be called before each turn of a wait for a rank of this host.  If that rank is on our
 * processor, the wait sleeps at once; if ranks share processors, it yields. */
static inline void wait_for_rank(struct wait *wait, int local_rank)
{
    const int spins = wait->waiter->spins;

    if (spins == 0 || (wait->turns < spins && wait->turns % TURNS_BETWEEN_LOOKS == 0))
        wait_look_at_rank(wait, local_rank);
}

/* On Arm, YIELD takes no time on most processors.  ISB takes about as long as PAUSE on x86-64. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
