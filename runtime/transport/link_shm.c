/* SPDX-License-Identifier: Apache-2.0 */
/* link_shm.c - a link of two rings in the host segment, one for each direction.
 *
 * A ring has one writer and one reader.  The writer counts the bytes written, the reader counts the
 * bytes read, and the ring holds the bytes between the two counts.  The writer publishes a long
 * message in pieces, so that the reader copies one piece while the writer copies the next.  If each
 * rank has a processor, a message takes the time of one copy.
 *
 * The writer rings the reader's doorbell, since the reader may be waiting for bytes.  Most of the
 * cost of a small message is to fetch a cache line that the other rank has written.  So the reader
 * updates its count seldom, and rings the writer's doorbell only if the writer may have found the
 * ring full.
 *
 * The bytes of a short write are also copied next to the writer's count, as a note, so that the
 * reader need not fetch another cache line from the ring.  The next short write overwrites the note
 * even if the note was not read.  A reader that finds the note overwritten reads the ring. */
#include <stdlib.h>
#include <string.h>

#include "runtime/shm/copy_to_shared.h"
#include "runtime/transport/link.h"
#include "runtime/transport/mesh.h"

struct shm_link {
    struct link link;
    const struct node *node;
    int peer; /* the peer's rank on this host */
    struct ring *out, *in;
    int is_marked; /* true if the peer polls `out` always, so that `out` need not be marked again */
    unsigned char *out_data;
    const unsigned char *in_data;
    size_t bytes; /* size of each ring */
    /* From this byte of the stream on, the whole ring is used; earlier bytes use PART of it. */
    uint64_t grown_at;
    /* Count of the bytes of `out` that are published.  out->written has the same count, but its
     * cache line may be in the reader's cache. */
    uint64_t published;
    uint64_t seen_read; /* a copy of out->read, perhaps out of date */
    uint64_t taken;     /* count of the bytes read from `in`; in->read may be less */
    uint64_t rung_at;   /* the value of `taken` when this rank last rang the writer of `in` */
    struct copy_shared copies;
};

/* How many bytes are published at a time.  A write of less than PIECE is published in smaller
 * pieces, so that the reader begins early.  SMALL_PIECE is just below 4 KiB, the size from which on
 * glibc's memcpy() uses `rep movsb`: this took 2/3 more time for 4 KiB when measured. */
#define SMALL_PIECE ((size_t)3968)
#define PIECE ((size_t)16 << 10)
#define NOTE_BYTES sizeof(((struct ring *)0)->note)
#define NO_NOTE 0 /* the content of new memory */

/* A page fault costs more than the copies.  So both ranks use only the first PART of the ring until
 * GROWS_AFTER times the ring's size has been sent.  The first byte in the whole ring then goes
 * right behind the part, since PART divides the size of the ring.  There are no unread bytes behind
 * the part at that time. */
#define PART ((size_t)256 << 10)
_Static_assert((PART & (PART - 1)) == 0 && PART >= PIECE, "a power of two, as whole rings are");
#define GROWS_AFTER 8

static size_t size_at(const struct shm_link *shm, uint64_t at)
{
    return at < shm->grown_at ? PART : shm->bytes;
}

static int link_shm_can_reach(const struct mesh *mesh, int peer)
{
    return mesh->node.base && mesh->peers[peer].local >= 0 && peer != mesh->rank;
}

static void ring_put(struct shm_link *shm, uint64_t at, const void *data, size_t bytes)
{
    const size_t size = size_at(shm, at), offset = at & (size - 1);
    const size_t first = bytes < size - offset ? bytes : size - offset;

    shm->copies.lap = size;
    copy_shared(&shm->copies, shm->out_data + offset, data, first);
    if (bytes > first)
        copy_shared(&shm->copies, shm->out_data + ((at + first) & (size_at(shm, at + first) - 1)),
                    (const char *)data + first, bytes - first);
}

static size_t room_in(struct shm_link *shm, uint64_t written, size_t wanted)
{
    const size_t size = size_at(shm, written);

    if (written - shm->seen_read + wanted > size)
        shm->seen_read = atomic_load_explicit(&shm->out->read, memory_order_acquire);
    return size - (size_t)(written - shm->seen_read);
}

/* Copies bytes that the ring already has to the note.  `start` is their position in the stream. */
static void write_note(struct ring *ring, uint64_t start, const uint64_t *words, size_t bytes)
{
    atomic_store_explicit(&ring->noted, NO_NOTE, memory_order_relaxed);
    for (size_t i = 0; i < (bytes + 7) / 8; i++)
        /* release: the reader must not see this word before it sees NO_NOTE */
        atomic_store_explicit(&ring->note[i], words[i], memory_order_release);
    atomic_store_explicit(&ring->noted, start << 8 | bytes, memory_order_release);
}

/* Reads n bytes of the stream, from `taken` on.  Returns 1, or 0 if the note does not have them. */
static int read_note(const struct ring *ring, uint64_t taken, char *to, size_t n)
{
    const uint64_t noted = atomic_load_explicit(&ring->noted, memory_order_acquire);
    const uint64_t start = noted >> 8, bytes = noted & 255;
    uint64_t words[NOTE_BYTES / 8];

    if (start > taken || taken + n > start + bytes || bytes > NOTE_BYTES)
        return 0;
    for (size_t i = (taken - start) / 8; i < (taken - start + n + 7) / 8; i++)
        /* acquire: this load must come before the second load of `noted` */
        words[i] = atomic_load_explicit(&ring->note[i], memory_order_acquire);
    if (atomic_load_explicit(&ring->noted, memory_order_relaxed) != noted)
        return 0;
    memcpy(to, (const char *)words + (taken - start), n);
    return 1;
}

/* Lets the reader read all bytes before `written`.  Wakes the reader if `rings` is 1. */
static void link_shm_publish(struct shm_link *shm, uint64_t written, int rings)
{
    shm->published = written;
    atomic_store_explicit(&shm->out->written, written, memory_order_release);
    if (!shm->is_marked) {
        node_mark(shm->node, shm->node->rank, shm->peer);
        shm->is_marked = shm->node->size <= RINGS_POLLED;
    }
    if (rings)
        node_ring_bell(shm->node, shm->peer);
}

/* Writes the parts to the ring and to the note, which have room for them.  Returns the number of
 * bytes. */
static ssize_t write_few(struct shm_link *shm, const struct iovec *parts, int count)
{
    const uint64_t start = shm->published;
    uint64_t words[NOTE_BYTES / 8];
    size_t bytes = 0;

    for (int i = 0; i < count; i++) {
        memcpy((char *)words + bytes, parts[i].iov_base, parts[i].iov_len);
        bytes += parts[i].iov_len;
    }
    memset((char *)words + bytes, 0, -bytes & 7); /* zeros up to a whole word */
    ring_put(shm, start, words, bytes);
    write_note(shm->out, start, words, bytes);
    link_shm_publish(shm, start + bytes, 1);
    return (ssize_t)bytes;
}

static ssize_t write_ring(struct link *link, const struct iovec *parts, int count)
{
    struct shm_link *shm = (struct shm_link *)link;
    const uint64_t start = shm->published;
    size_t all = 0, piece;
    uint64_t at = start;

    for (int i = 0; i < count; i++)
        all += parts[i].iov_len;
    if (all == 0 || (all <= WHOLE_FRAME && room_in(shm, start, all) < all))
        return 0;
    if (all <= NOTE_BYTES)
        return write_few(shm, parts, count);
    piece = all < PIECE ? SMALL_PIECE : PIECE;
    for (int i = 0; i < count; i++) {
        const char *from = parts[i].iov_base;
        size_t left = parts[i].iov_len, n;

        for (; left > 0; left -= n, from += n, at += n) {
            n = room_in(shm, at, left < piece ? left : piece);
            n = n < left ? n : left;
            n = n < piece ? n : piece;
            if (n == 0)
                break;
            ring_put(shm, at, from, n);
            if (at + n - shm->published >= piece)
                /* The first piece wakes a reader that sleeps.  A ring waits until the stores of the
                 * piece have left the processor's store buffer. */
                link_shm_publish(shm, at + n, shm->published == start);
        }
        if (left > 0)
            break;
    }
    if (at > start)
        link_shm_publish(shm, at, 1);
    return (ssize_t)(at - start);
}

/* Updates the reader's count after each quarter of the ring, or the writer could wait forever.
 * Wakes the writer if it may wait for room: it can have found too little room for a frame only if
 * it has written nearly as much as the ring's size since the last wake. */
static void give_room(struct shm_link *shm, uint64_t written)
{
    const int may_wait = written - shm->rung_at > size_at(shm, written) - WHOLE_FRAME;
    const uint64_t given = atomic_load_explicit(&shm->in->read, memory_order_relaxed);

    if (!may_wait && shm->taken - given < size_at(shm, shm->taken) / 4)
        return;
    atomic_store_explicit(&shm->in->read, shm->taken, memory_order_release);
    if (!may_wait)
        return;
    shm->rung_at = shm->taken;
    node_ring_bell(shm->node, shm->peer);
}

static void ring_get(struct shm_link *shm, char *to, size_t bytes)
{
    const size_t size = size_at(shm, shm->taken), offset = shm->taken & (size - 1);
    const size_t first = bytes < size - offset ? bytes : size - offset;
    const uint64_t rest = shm->taken + first;

    memcpy(to, shm->in_data + offset, first);
    if (bytes > first)
        memcpy(to + first, shm->in_data + (rest & (size_at(shm, rest) - 1)), bytes - first);
}

static ssize_t read_ring(struct link *link, void *data, size_t bytes)
{
    struct shm_link *shm = (struct shm_link *)link;
    const uint64_t written = atomic_load_explicit(&shm->in->written, memory_order_acquire);
    const size_t there = (size_t)(written - shm->taken);
    const size_t n = there < bytes ? there : bytes;

    for (size_t got = 0; got < n;) {
        const size_t piece = n - got < PIECE ? n - got : PIECE;

        if (n > NOTE_BYTES || !read_note(shm->in, shm->taken, data, n))
            ring_get(shm, (char *)data + got, piece);
        shm->taken += piece;
        got += piece;
        give_room(shm, written);
    }
    return (ssize_t)n;
}

static int ring_has_room(struct link *link, size_t bytes)
{
    struct shm_link *shm = (struct shm_link *)link;

    return room_in(shm, shm->published, bytes) >= bytes;
}

static void close_ring(struct link *link)
{
    free(link);
}

static ct_status open_ring(struct mesh *mesh, int peer, struct link **link);

const struct link_ops link_shm = { .name = "shm",
                                   .device_rendezvous = 1,
                                   .can_reach = link_shm_can_reach,
                                   .open = open_ring,
                                   .write = write_ring,
                                   .has_room = ring_has_room,
                                   .read = read_ring,
                                   .close = close_ring };

static ct_status open_ring(struct mesh *mesh, int peer, struct link **link)
{
    struct shm_link *shm = calloc(1, sizeof *shm);

    if (!shm)
        return ct_fail(CT_ERR_NOMEM, "no memory for a link to rank %d", peer);
    shm->link = (struct link){ .ops = &link_shm, .fd = -1 };
    shm->node = &mesh->node;
    shm->peer = mesh->peers[peer].local;
    shm->out = node_ring(&mesh->node, mesh->node.rank, shm->peer);
    shm->in = node_ring(&mesh->node, shm->peer, mesh->node.rank);
    shm->out_data = node_ring_data(&mesh->node, mesh->node.rank, shm->peer);
    shm->in_data = node_ring_data(&mesh->node, shm->peer, mesh->node.rank);
    shm->bytes = node_ring_bytes(&mesh->node);
    shm->grown_at = shm->bytes > PART ? GROWS_AFTER * shm->bytes + PART : 0;
    shm->published = atomic_load(&shm->out->written);
    shm->seen_read = atomic_load(&shm->out->read);
    shm->taken = shm->rung_at = atomic_load(&shm->in->read);
    *link = &shm->link;
    return CT_OK;
}
