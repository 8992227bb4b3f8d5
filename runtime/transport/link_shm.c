/* SPDX-License-Identifier: Apache-2.0 */
/* link_shm.c - two rings in the node's memory, one each way.
 *
 * One writer, one reader, each with a 64-bit count of bytes that only grows; the difference is
 * what lies in the ring.  A long message is told of in pieces, so that the reader copies one while
 * the writer copies the next: with a processor each, a message takes the time of one copy.
 *
 * The reader may wait for bytes, so whoever writes rings its doorbell.  The writer waits for room
 * only, so the reader says seldom how far it is, and rings only if it found the ring full: to ask
 * for the writer's line of memory, and to wait for it, is most of what a small message costs.
 *
 * So few bytes stand once more beside the count, as a note: in the ring their reader would have to
 * fetch another line.  A note is overwritten when the next few are written, read or not; who finds
 * that it was, while it read, reads the ring. */
#include <stdlib.h>
#include <string.h>

#include "runtime/shm/copy_to_shared.h"
#include "runtime/transport/link.h"
#include "runtime/transport/mesh.h"

struct shm_link {
    struct link link;
    const struct node *node;
    int peer; /* in the node */
    struct ring *out, *in;
    size_t bytes;      /* of each, */
    uint64_t grown_at; /* from this byte of the stream on; before, a part of it is used */
    uint64_t told;     /* of out: how far its reader may read; there it is a line of the reader's */
    uint64_t seen_read; /* of out: how far its reader was when we last looked */
    uint64_t taken;     /* of in: how far we are; its writer may not know yet */
    uint64_t rung_at;   /* of in: how far we were when we last rang for its writer */
    struct copy_shared copies;
};

#define PIECE ((size_t)16 << 10) /* told of at once */
#define NOTE_BYTES sizeof(((struct ring *)0)->note)
#define NO_NOTE 0 /* as in fresh memory */

/* Memory that is new costs more than the copies, so at first both go round a part of the ring,
 * until eight times all of it have gone through.  What is behind begins where the part ends:
 * nothing that is unread lies there, since the part divides the ring. */
#define PART ((size_t)256 << 10)
_Static_assert(PART % PIECE == 0, "and there is room for a piece");
#define GROWS_AFTER 8

static size_t size_at(const struct shm_link *shm, uint64_t at)
{
    return at < shm->grown_at ? PART : shm->bytes;
}

/* Read; less than the ring, or the writer waits for ever. */
static size_t tell_after(const struct shm_link *shm)
{
    return size_at(shm, shm->taken) / 4;
}

static int can_reach(const struct mesh *mesh, int peer)
{
    return mesh->node.base && mesh->peers[peer].local >= 0 && peer != mesh->rank;
}

static void put(struct shm_link *shm, uint64_t at, const char *data, size_t bytes)
{
    struct ring *ring = shm->out;
    const size_t size = size_at(shm, at), offset = at % size;
    const size_t first = bytes < size - offset ? bytes : size - offset;

    shm->copies.lap = size;
    copy_shared(&shm->copies, ring->data + offset, data, first);
    copy_shared(&shm->copies, ring->data + (at + first) % size_at(shm, at + first), data + first,
                bytes - first);
}

static size_t room_in(struct shm_link *shm, uint64_t written, size_t wanted)
{
    const size_t size = size_at(shm, written);

    if (written - shm->seen_read + wanted > size)
        shm->seen_read = atomic_load_explicit(&shm->out->read, memory_order_acquire);
    return size - (size_t)(written - shm->seen_read);
}

/* Of bytes that are in the ring already, from start on. */
static void write_note(struct ring *ring, uint64_t start, const struct iovec *parts, size_t bytes)
{
    uint64_t words[NOTE_BYTES / 8] = { 0 };

    for (size_t at = 0, n; at < bytes; at += n, parts++) {
        n = parts->iov_len < bytes - at ? parts->iov_len : bytes - at;
        memcpy((char *)words + at, parts->iov_base, n);
    }
    atomic_store_explicit(&ring->noted, NO_NOTE, memory_order_relaxed);
    for (size_t i = 0; i < (bytes + 7) / 8; i++)
        atomic_store_explicit(&ring->note[i], words[i], memory_order_release); /* after that */
    atomic_store_explicit(&ring->noted, start << 8 | bytes, memory_order_release);
}

/* n bytes of the stream from `taken` on; 0: they do not stand there. */
static int read_note(const struct ring *ring, uint64_t taken, char *to, size_t n)
{
    const uint64_t noted = atomic_load_explicit(&ring->noted, memory_order_acquire);
    const uint64_t start = noted >> 8, bytes = noted & 255;
    uint64_t words[NOTE_BYTES / 8];

    if (start > taken || taken + n > start + bytes || bytes > NOTE_BYTES)
        return 0;
    for (size_t i = 0; i < NOTE_BYTES / 8; i++)
        words[i] = atomic_load_explicit(&ring->note[i], memory_order_acquire); /* before the look */
    if (atomic_load_explicit(&ring->noted, memory_order_relaxed) != noted)
        return 0;
    memcpy(to, (const char *)words + (taken - start), n);
    return 1;
}

/* What was copied so far may be read. */
static void tell_reader(struct shm_link *shm, uint64_t written)
{
    shm->told = written;
    atomic_store_explicit(&shm->out->written, written, memory_order_release);
    node_ring_bell(shm->node, shm->peer);
}

static ssize_t write_ring(struct link *link, const struct iovec *parts, int count)
{
    struct shm_link *shm = (struct shm_link *)link;
    const uint64_t start = shm->told;
    uint64_t at = start;

    for (int i = 0; i < count; i++) {
        const char *from = parts[i].iov_base;
        size_t left = parts[i].iov_len, n;

        for (; left > 0; left -= n, from += n, at += n) {
            n = room_in(shm, at, left < PIECE ? left : PIECE);
            n = n < left ? n : left;
            n = n < PIECE ? n : PIECE;
            if (n == 0)
                break;
            put(shm, at, from, n);
            if (at + n - shm->told >= PIECE)
                tell_reader(shm, at + n);
        }
        if (left > 0)
            break;
    }
    if (at - start <= NOTE_BYTES && at > start)
        write_note(shm->out, start, parts, at - start);
    if (at > shm->told)
        tell_reader(shm, at);
    return (ssize_t)(at - start);
}

/* The writer waits for room only if it saw the ring full, as far as it knew: so if more than a
 * ring was written since we last rang. */
static void tell_writer(struct shm_link *shm, uint64_t written)
{
    atomic_store_explicit(&shm->in->read, shm->taken, memory_order_release);
    if (written - shm->rung_at < size_at(shm, written))
        return;
    shm->rung_at = shm->taken;
    node_ring_bell(shm->node, shm->peer);
}

static void get(struct shm_link *shm, char *to, size_t bytes)
{
    const size_t size = size_at(shm, shm->taken), offset = shm->taken % size;
    const size_t first = bytes < size - offset ? bytes : size - offset;
    const uint64_t rest = shm->taken + first;

    memcpy(to, shm->in->data + offset, first);
    memcpy(to + first, shm->in->data + rest % size_at(shm, rest), bytes - first);
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
            get(shm, (char *)data + got, piece);
        shm->taken += piece;
        got += piece;
        if (written - shm->rung_at >= size_at(shm, written)
            || shm->taken - atomic_load_explicit(&shm->in->read, memory_order_relaxed)
                   >= tell_after(shm))
            tell_writer(shm, written);
    }
    return (ssize_t)n;
}

static void close_ring(struct link *link)
{
    free(link);
}

static ct_status open_ring(struct mesh *mesh, int peer, struct link **link);

const struct link_ops link_shm = { .name = "shm",
                                   .eager_bytes = EAGER_IN_MEMORY,
                                   .device_rendezvous = 1,
                                   .can_reach = can_reach,
                                   .open = open_ring,
                                   .write = write_ring,
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
    shm->bytes = node_ring_bytes(&mesh->node);
    shm->grown_at = shm->bytes > PART ? GROWS_AFTER * shm->bytes + PART : 0;
    shm->told = atomic_load(&shm->out->written);
    shm->seen_read = atomic_load(&shm->out->read);
    shm->taken = shm->rung_at = atomic_load(&shm->in->read);
    *link = &shm->link;
    return CT_OK;
}
