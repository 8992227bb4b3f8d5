/* SPDX-License-Identifier: Apache-2.0 */
/* slots.c - chooses the memory through which a call's data passes.
 *
 * Each rank has an area, from which it takes a slot in each round.  The slot lies at the same place
 * in all areas.  When all ranks are in round n, no rank reads the slots of round n-1 any more.  So
 * a rank may then write to a large slot of round n+1, which does not overlap that of round n.  The
 * small slots are used in turn.  There are enough of them for a rank that is SHM_AHEAD rounds ahead
 * (rounds.c).
 *
 * One rank writes a slot in a round, mostly the owner of the slot.  In a scatter the root writes to
 * all slots: each rank's piece into that rank's slot.  This is safe: no other rank has data to
 * send, and the ranks that read these slots before have finished, as above.  The root's own
 * line announces that the pieces are there.
 *
 * Cost: the bytes are written once, and read once by each rank that needs them. */
#include "runtime/group/shm/slots.h"

#include "runtime/group/shm/shm_group_internal.h"

#define SMALL_SLOT ((size_t)16 << 10)
#define GROWS_AFTER 8 /* the large slots use more memory after so many laps */
/* Limit of the bytes that one slot of each rank together take.  In a group of up to 256 ranks a
 * slot can have SHM_GROUP_MOST_SLOT bytes. */
#define ALL_SLOTS ((size_t)64 << 20)

/* ---- The area ------------------------------------------------------------------- */

static size_t slot_most(int count)
{
    size_t bytes = SHM_GROUP_MOST_SLOT;

    while (bytes * (size_t)count > ALL_SLOTS)
        bytes /= 2;
    return bytes;
}

static size_t small_slots_bytes(int count)
{
    return (size_t)(shm_ahead(count) + 1) * SMALL_SLOT;
}

/* Returns the bytes of a rank's area.  Before a rank can write a cache line that another processor
 * holds, it must fetch the line from there.  If the slots rotate through more memory than a
 * processor's private cache holds, that cache has dropped the line by then.  Two ranks that share
 * only the third-level cache copy 256 KiB in 32 us when they reuse 256 KiB, and in 9 us when they
 * rotate through 2 MiB. */
size_t shm_slots_bytes(int count)
{
    return (count <= 2 ? 8 : count <= 4 ? 4 : 3) * slot_most(count) + small_slots_bytes(count);
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

/* Returns the offset of the next slot in each rank's area.  The small slots are at the front: it
 * is faster to fetch a few lines from another processor's cache than from memory.  Large slots
 * rotate through the rest.  At first they use only a part of it, since a page fault costs more than
 * the copy; the part grows with the bytes that have passed through it.  The part always has room
 * for three of the largest slots so far, so a slot at its start never overlaps the slot before. */
static size_t slot_next(struct shm_group *f, size_t bytes)
{
    struct shm_slots *const s = &f->slots;
    const size_t small = small_slots_bytes(f->size);
    const size_t slot = (bytes + CACHE_PAIR - 1) / CACHE_PAIR * CACHE_PAIR;
    const size_t all = s->stride - small;
    size_t at;

    if (slot <= SMALL_SLOT) {
        s->copies.lap = small;
        return (s->small = (s->small + SMALL_SLOT) % small);
    }
    s->through += slot;
    if (s->lap < 3 * slot)
        s->lap = 3 * slot;
    if (s->lap < s->through / GROWS_AFTER)
        s->lap = s->through / GROWS_AFTER < all ? s->through / GROWS_AFTER : all;
    s->copies.lap = s->lap;
    at = s->next + slot <= s->lap ? s->next : 0;
    s->next = at + slot;
    return small + at;
}

ct_status shm_group_next_slot(struct shm_group *f, size_t bytes)
{
    struct shm_slots *const s = &f->slots;

    s->inlined = bytes <= SHM_GROUP_INLINE_BYTES;
    if (!s->inlined)
        s->at = slot_next(f, bytes < s->most ? bytes : s->most);
    return bytes <= SMALL_SLOT ? shm_wait_for_line(f) : shm_wait_all_in(f, f->round);
}

/* ---- Access to the slots ---------------------------------------------------- */

static unsigned char *slot_of(const struct shm_group *f, int rank)
{
    return f->slots.base + (size_t)rank * f->slots.stride + f->slots.at;
}

/* Returns this rank's slot of the next round, in which this rank has not arrived yet. */
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
