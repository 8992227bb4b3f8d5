/* SPDX-License-Identifier: Apache-2.0 */
/* doorbell.h - a rank's doorbell, in memory that its node's ranks share.
 *
 * Who changes something that a rank may be waiting for rings that rank's bell; ringing costs two
 * loads while nobody sleeps.  The owner also says there on which processor it is: who waits for it
 * should not keep that one busy. */
#ifndef RUNTIME_SHM_DOORBELL_H
#define RUNTIME_SHM_DOORBELL_H

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

#endif
