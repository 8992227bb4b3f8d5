/* SPDX-License-Identifier: Apache-2.0 */
/* link_shm.c - two rings in the node's memory, one each way.
 *
 * One writer, one reader, each with a 64-bit count of bytes that only grows;
 * the difference is what lies in the ring.  Whoever changes a count rings the
 * other's doorbell: the reader may wait for bytes, the writer for room. */
#include <stdlib.h>
#include <string.h>

#include "runtime/link.h"
#include "runtime/mesh.h"

struct shm_link {
    struct link link;
    const struct node *node;
    int peer; /* in the node */
    struct ring *out, *in;
};

static int can_reach(const struct mesh *mesh, int peer)
{
    return mesh->node.base && mesh->peers[peer].local >= 0 && peer != mesh->rank;
}

static size_t put(struct ring *ring, uint64_t at, const void *data, size_t bytes)
{
    const size_t offset = at % RING_BYTES;
    const size_t first = bytes < RING_BYTES - offset ? bytes : RING_BYTES - offset;

    memcpy(ring->data + offset, data, first);
    memcpy(ring->data, (const char *)data + first, bytes - first);
    return bytes;
}

static ssize_t write_ring(struct link *link, const struct iovec *parts, int count)
{
    struct shm_link *shm = (struct shm_link *)link;
    const uint64_t start = atomic_load_explicit(&shm->out->written, memory_order_relaxed);
    const uint64_t read = atomic_load_explicit(&shm->out->read, memory_order_acquire);
    size_t room = RING_BYTES - (size_t)(start - read), done = 0;

    for (int i = 0; i < count && room > 0; i++) {
        const size_t n = parts[i].iov_len < room ? parts[i].iov_len : room;

        done += put(shm->out, start + done, parts[i].iov_base, n);
        room -= n;
    }
    if (done > 0) {
        atomic_store_explicit(&shm->out->written, start + done, memory_order_release);
        node_ring_bell(shm->node, shm->peer);
    }
    return (ssize_t)done;
}

static ssize_t read_ring(struct link *link, void *data, size_t bytes)
{
    struct shm_link *shm = (struct shm_link *)link;
    const uint64_t start = atomic_load_explicit(&shm->in->read, memory_order_relaxed);
    const uint64_t written = atomic_load_explicit(&shm->in->written, memory_order_acquire);
    const size_t n = written - start < bytes ? (size_t)(written - start) : bytes;
    const size_t offset = start % RING_BYTES;
    const size_t first = n < RING_BYTES - offset ? n : RING_BYTES - offset;

    if (n == 0)
        return 0;
    memcpy(data, shm->in->data + offset, first);
    memcpy((char *)data + first, shm->in->data, n - first);
    atomic_store_explicit(&shm->in->read, start + n, memory_order_release);
    node_ring_bell(shm->node, shm->peer);
    return (ssize_t)n;
}

static void close_ring(struct link *link)
{
    free(link);
}

static ct_status open_ring(struct mesh *mesh, int peer, struct link **link);

const struct link_ops link_shm = { .name = "shm",
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
    *link = &shm->link;
    return CT_OK;
}
