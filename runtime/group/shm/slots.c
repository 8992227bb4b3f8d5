/* SPDX-License-Identifier: Apache-2.0 */
/* slots.c - which memory a call's data goes through.
 *
 * Each rank has an area, from which it takes a slot in each round, at the same place in all areas.
 * Round n may overwrite what round n-2 left when all ranks are in round n-1: no rank reads n-2 any
 * more.
 *
 * A slot has one writer in a round, mostly its owner.  In a scatter the root writes to all slots,
 * each rank's piece into that rank's slot.  That is allowed: no other rank has data to send, and
 * ranks that read there two rounds ago are done, as above.  The root's own line announces that the
 * pieces are there.
 *
 * Cost: the bytes are written once, and read once by each rank that needs them. */
#include "runtime/group/shm/slots.h"

#include "runtime/group/shm/shm_group_internal.h"

#define SMALL_SLOT ((size_t)4 << 10)
#define GROWS_AFTER 8 /* the part of the memory that is used grows after so many laps */
/* Slots of a group together: with 256 ranks and less each slot may be of SHM_GROUP_MOST_SLOT. */
#define ALL_SLOTS ((size_t)64 << 20)

/* ---- The area ------------------------------------------------------------------- */

static size_t slot_most(int count)
{
    size_t bytes = SHM_GROUP_MOST_SLOT;

    while (bytes * (size_t)count > ALL_SLOTS)
        bytes /= 2;
    return bytes;
}

/* A rank that writes a line which another processor still holds must first get it back from
 * there.  If the slots rotate through more memory than a processor's own cache holds, that cache
 * has dropped the line by then: two ranks that share only the third-level cache copy 256 KiB in
 * 32 us when they reuse 256 KiB, and in 9 us when they rotate through 2 MiB. */
size_t shm_slots_bytes(int count)
{
    return (count <= 2 ? 8 : count <= 4 ? 4 : 3) * slot_most(count) + 2 * SMALL_SLOT;
}

void shm_slots_open(struct shm_group *f, unsigned char *base)
{
    f->slots.most = slot_most(f->size);
    f->slots.base = base;
    f->slots.stride = shm_slots_bytes(f->size);
}

size_t shm_group_slot_bytes(const struct shm_group *f)
{
    return f->slots.most;
}

/* ---- The next slot -------------------------------------------------------------- */

/* Small slots alternate at the front: it is faster to get a few lines back from another
 * processor's cache than from memory.  Large slots rotate through the rest.  At first they use a
 * part of it, since a page fault costs more than the copy; the part grows with the bytes that
 * have gone through it.  There is always room for three of the largest so far, so the slot at
 * the start never overlaps the last one. */
static size_t slot_next(struct shm_slots *s, size_t bytes)
{
    const size_t slot = (bytes + CACHE_PAIR - 1) / CACHE_PAIR * CACHE_PAIR;
    const size_t all = s->stride - 2 * SMALL_SLOT;
    size_t at;

    if (slot <= SMALL_SLOT)
        return (s->small ^= SMALL_SLOT);
    s->through += slot;
    if (s->lap < 3 * slot)
        s->lap = 3 * slot;
    if (s->lap < s->through / GROWS_AFTER)
        s->lap = s->through / GROWS_AFTER < all ? s->through / GROWS_AFTER : all;
    s->copies.lap = s->lap;
    at = s->next + slot <= s->lap ? s->next : 0;
    s->next = at + slot;
    return 2 * SMALL_SLOT + at;
}

/* When all ranks are in the last round, no rank reads the line of the round before it, nor the
 * slots of the rounds before the last one: we may write them. */
ct_status shm_group_next_slot(struct shm_group *f, size_t bytes)
{
    struct shm_slots *const s = &f->slots;

    s->inlined = bytes <= SHM_GROUP_INLINE_BYTES;
    if (!s->inlined)
        s->at = slot_next(s, bytes < s->most ? bytes : s->most);
    return shm_wait_all_in(f, f->round);
}

/* ---- What lies there ------------------------------------------------------------ */

static unsigned char *slot_of(const struct shm_group *f, int rank)
{
    return f->slots.base + (size_t)rank * f->slots.stride + f->slots.at;
}

/* In the next round, in which this rank has not arrived yet. */
void *shm_group_own(const struct shm_group *f)
{
    return f->slots.inlined ? shm_line(f, f->rank, f->round + 1)->payload : slot_of(f, f->rank);
}

const void *shm_group_slot(const struct shm_group *f, int rank)
{
    return f->slots.inlined ? shm_line(f, rank, f->round)->payload : slot_of(f, rank);
}

void *shm_group_answer(const struct shm_group *f)
{
    return (void *)(uintptr_t)shm_group_slot(f, f->rank);
}

void shm_group_write(struct shm_group *f, size_t at, const void *from, size_t bytes)
{
    copy_shared(&f->slots.copies, (char *)shm_group_own(f) + at, from, bytes);
}

int shm_group_streams(const struct shm_group *f)
{
    return f->slots.copies.streams;
}

/* Pieces of a few bytes all lie in the root's line. */
void shm_group_write_to(struct shm_group *f, int rank, const void *from, size_t bytes)
{
    unsigned char *to = f->slots.inlined ? (unsigned char *)shm_group_own(f) + (size_t)rank * bytes
                                         : slot_of(f, rank);

    copy_shared(&f->slots.copies, to, from, bytes);
}

const void *shm_group_written_here(const struct shm_group *f, int from, size_t bytes)
{
    return f->slots.inlined
               ? (const unsigned char *)shm_group_slot(f, from) + (size_t)f->rank * bytes
               : slot_of(f, f->rank);
}
