/* SPDX-License-Identifier: Apache-2.0 */
/* sendrecv.h - functions for algorithms that send messages.  Ranks are those of the group. */
#ifndef COLLECTIVES_CORE_SENDRECV_H
#define COLLECTIVES_CORE_SENDRECV_H

#include "collectives/core/call.h"
#include "runtime/messaging/messages.h"

ct_status send_to(struct call *c, int to, struct span out);
ct_status recv_from(struct call *c, int from, struct span in);
/* Sends and receives at once, so that a ring of ranks can't deadlock. */
ct_status exchange(struct call *c, int to, struct span out, int from, struct span in);

/* Many messages at once: batch_begin(), then sends and receives, then batch_wait() or
 * batch_cancel(), which free the batch.  On a batch of zeros, or a freed one, both do nothing.  The
 * messages start together in batch_wait(), receives first, and all to one peer in one write.  A
 * caller that has something else to do meanwhile starts them by batch_start(). */
struct batch {
    struct call *call;
    struct request *requests;
    int used, size;
    int started; /* how many of the requests */
};

ct_status batch_begin(struct batch *batch, struct call *c, int size);
void batch_send(struct batch *batch, int to, struct span out);
void batch_recv(struct batch *batch, int from, struct span in);
void batch_start(struct batch *batch);
ct_status batch_wait(struct batch *batch);
void batch_cancel(struct batch *batch);

/* Gives the piece size of algorithms that receive a piece from each rank at once.  It is at most a
 * MiB, and a place for each rank takes SCRATCH_BYTES at most.  It is a multiple of any element, and
 * the same on all ranks. */
#define SCRATCH_BYTES ((size_t)8 << 20)
size_t piece_of_each(const struct call *c);

/* Gives part i of `count` elements at data, cut into nearly equal parts: one for each rank, or
 * `parts`. */
struct span part_of(const struct call *c, void *data, size_t count, int i);
struct span part_of_some(const struct call *c, void *data, size_t count, int i, int parts);

static inline struct span span_of(const void *data, size_t bytes)
{
    return (struct span){ (char *)(uintptr_t)data, bytes };
}

static inline void copy_span(struct span to, const void *from)
{
    if (to.bytes > 0 && to.data != from)
        memcpy(to.data, from, to.bytes);
}

#endif
