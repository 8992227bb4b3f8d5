/* SPDX-License-Identifier: Apache-2.0 */
/* weak_memory.pml - two protocols of docs/memory-order.md on a weakly ordered machine, as models
 * for Spin.  run.sh runs them.
 *
 *   SLEEP  a rank sleeps until another rank arrives (shm_wait.c, waiter.c)
 *   NOTE   a ring, and the note of the bytes written last (link_shm.c)
 *
 * A thread does its loads and stores in any order that the architecture allows.  Each access has a
 * set of others that come before it, because of a fence, a release, an acquire or the same address.
 * The memory has one state, since a store on Arm becomes visible to all other processors at once.
 * run.sh replaces one set after the other by a smaller one, and Spin must find an error. */

#define B(n) (1 << (n))
/* Access n comes after the accesses in the set `after`, and waits until `ready` is true. */
#define ACCESS(n, after, ready, what) \
    :: atomic { !(done & B(n)) && (done & (after)) == (after) && (ready) -> what; done = done | B(n) }

#ifndef PUBLISHED
#define PUBLISHED B(0) /* the fence in round_show_line() */
#endif
#ifndef ANNOUNCED
#define ANNOUNCED B(2) /* the fence in shm_wait_announce() */
#endif
#ifndef BELL_SEEN
#define BELL_SEEN B(1) /* the caller tests after announce_sleep() */
#endif
#ifndef RELEASED
#define RELEASED 4095 /* a release store of a word comes after all accesses before it */
#endif
#ifndef ACQUIRED
#define ACQUIRED 4095 /* an acquire load of a word comes before all accesses behind it */
#endif

#ifdef SLEEP
bit arrived, sleepers, awaited_by, bell, asleep;

active proctype arriver()
{
    byte done;
    bit by, wakes;

    do
    ACCESS(0, 0, 1, arrived = 1)
    ACCESS(1, PUBLISHED, 1, by = awaited_by; awaited_by = 0)
    ACCESS(2, B(1), 1, wakes = by && sleepers)
    ACCESS(3, B(2), 1, bell = bell || wakes)
    ACCESS(4, B(3), 1, asleep = asleep && !wakes) /* FUTEX_WAKE */
    :: done == B(5) - 1 -> break
    od
}

active proctype sleeper()
{
    byte done;
    bit seen, is_over;

    do
    ACCESS(0, 0, 1, sleepers = 1)
    ACCESS(1, B(0), 1, seen = bell)
    ACCESS(2, B(0), 1, awaited_by = 1)
    ACCESS(3, B(0) | BELL_SEEN | ANNOUNCED, 1, is_over = arrived)
    :: done == B(4) - 1 -> break
    od;
    atomic { asleep = !is_over && bell == seen }; /* FUTEX_WAIT compares and sleeps in one step */
    !asleep /* a lost wake-up is an invalid end state */
}
#endif

#ifdef NOTE
byte ring[3], noted, word[2], written;

/* noted_at, word_at: the accesses that stored `noted` and word[0] before */
#define MESSAGE(m, n, noted_at, word_at)                                     \
    ACCESS(n, 0, 1, ring[m] = m)                                             \
    ACCESS(n + 1, noted_at, 1, noted = 0)                                    \
    ACCESS(n + 2, ((B(n + 2) - 1) & RELEASED) | word_at, 1, word[0] = m)     \
    ACCESS(n + 3, ((B(n + 3) - 1) & RELEASED) | word_at * 2, 1, word[1] = m) \
    ACCESS(n + 4, B(n + 4) - 1, 1, noted = m)                                \
    ACCESS(n + 5, B(n + 5) - 1, 1, written = m)

active proctype writer()
{
    short done;

    do
    MESSAGE(1, 0, 0, 0)
    MESSAGE(2, 6, B(4), B(2))
    :: done == B(12) - 1 -> break
    od
}

active proctype reader()
{
    byte done, first, second, got[2];

    do
    ACCESS(0, 0, written >= 1, skip)
    ACCESS(1, B(0), 1, first = noted)
    ACCESS(2, B(1), 1, got[0] = word[0])
    ACCESS(3, B(1), 1, got[1] = word[1])
    ACCESS(4, B(1) | ((B(2) | B(3)) & ACQUIRED), 1, second = noted)
    :: done == B(5) - 1 -> break
    od;
    assert(ring[1] == 1 && (first != 1 || second != 1 || (got[0] == 1 && got[1] == 1)))
}
#endif
