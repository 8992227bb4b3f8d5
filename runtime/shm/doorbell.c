/* SPDX-License-Identifier: Apache-2.0 */
/* doorbell.c - ringing: see doorbell.h. */
#include "runtime/shm/doorbell.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

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
