/* SPDX-License-Identifier: Apache-2.0 */
/* libnccl_pipes.c - the bytes between the fake NCCL's ranks.
 *
 * All messages of a job move at the same time, a piece of each in turn; of those to one peer, or
 * from it, only the first.  In front of each goes what it is: ranks that make different calls are
 * ncclInvalidUsage here, where the real one hangs. */
#include "tests/fake/libnccl.h"

#include <string.h>
#include <time.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t put(struct pipe *pipe, const unsigned char *data, uint64_t bytes)
{
    const uint64_t written = atomic_load_explicit(&pipe->written, memory_order_relaxed);
    const uint64_t room = PIPE_BYTES - (written - atomic_load(&pipe->read)),
                   at = written % PIPE_BYTES, n = least(least(bytes, room), PIPE_BYTES - at);

    memcpy(pipe->data + at, data, n);
    atomic_store(&pipe->written, written + n);
    return n;
}

static uint64_t take(struct pipe *pipe, unsigned char *data, uint64_t bytes)
{
    const uint64_t read = atomic_load_explicit(&pipe->read, memory_order_relaxed);
    const uint64_t there = atomic_load(&pipe->written) - read, at = read % PIPE_BYTES,
                   n = least(least(bytes, there), PIPE_BYTES - at);

    memcpy(data, pipe->data + at, n);
    atomic_store(&pipe->read, read + n);
    return n;
}

static uint64_t move(struct pipe *pipe, int is_send, void *data, uint64_t bytes)
{
    return is_send ? put(pipe, data, bytes) : take(pipe, data, bytes);
}

static int is_done(const struct message *m)
{
    return m->head_at == sizeof m->head && m->at == m->bytes;
}

/* Bytes that moved. */
static uint64_t move_message(ncclComm_t comm, struct message *m)
{
    struct pipe *pipe = m->is_send ? &comm->commons->pipes[comm->rank][m->peer]
                                   : &comm->commons->pipes[m->peer][comm->rank];
    uint64_t moved = 0, now;

    if (m->head_at < sizeof m->head) {
        if (m->is_send) {
            m->head[0] = m->bytes;
            m->head[1] = m->kind;
        }
        moved = move(pipe, m->is_send, (char *)m->head + m->head_at, sizeof m->head - m->head_at);
        m->head_at += moved;
        if (m->head_at < sizeof m->head)
            return moved;
        if (m->head[0] != m->bytes || m->head[1] != m->kind)
            comm_fails(comm, ncclInvalidUsage, "the ranks make different calls");
    }
    now = move(pipe, m->is_send, m->data + m->at, m->bytes - m->at);
    m->at += now;
    return moved + now;
}

int messages_move(ncclComm_t comm, struct message *messages)
{
    const struct timespec nap = { 0, 20000 };

    while (!atomic_load(&comm->aborted) && atomic_load(&comm->error) == ncclSuccess) {
        int first_to[NCCL_RANKS] = { 0 }, first_from[NCCL_RANKS] = { 0 }, left = 0;
        uint64_t moved = 0;

        for (struct message *m = messages; m; m = m->next) {
            int *const first = m->is_send ? &first_to[m->peer] : &first_from[m->peer];

            if (is_done(m))
                continue;
            left++;
            if (!*first)
                moved += move_message(comm, m);
            *first = 1;
        }
        if (left == 0)
            return 1;
        if (moved == 0)
            nanosleep(&nap, NULL);
    }
    return 0;
}
