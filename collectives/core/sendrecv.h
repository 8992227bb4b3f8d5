/* SPDX-License-Identifier: Apache-2.0 */
/* sendrecv.h - functions for algorithms that send messages.  Ranks are numbers within the call's
 * group. */
#ifndef COLLECTIVES_CORE_SENDRECV_H
#define COLLECTIVES_CORE_SENDRECV_H

#include "collectives/core/call.h"
#include "runtime/messaging/messages.h"

ct_status send_to(struct call *c, int to, struct span out);
ct_status recv_from(struct call *c, int from, struct span in);
/* Sends and receives at the same time, so that a ring of ranks can't deadlock. */
ct_status exchange(struct call *c, int to, struct span out, int from, struct span in);

/* A batch of messages.  After batch_begin() the caller adds sends and receives, then calls
 * batch_wait() or batch_cancel(), which free the batch.  On a batch of zeros or a freed batch these
 * two do nothing. batch_wait() starts all messages together, receives first, and writes all
 * messages to one peer in one write.  A caller that has other work to do before batch_wait() starts
 * the messages with batch_start(). */
struct batch {
    struct call *call;
    struct request *requests;
    int used, size;
    int started; /* number of requests that are started */
};

ct_status batch_begin(struct batch *batch, struct call *c, int size);
void batch_send(struct batch *batch, int to, struct span out);
void batch_recv(struct batch *batch, int from, struct span in);
void batch_start(struct batch *batch);
ct_status batch_wait(struct batch *batch);
void batch_cancel(struct batch *batch);

/* Returns the piece size of algorithms that receive a piece from each rank at the same time.  A
 * piece is at most 1 MiB, and the pieces of all ranks together use at most SCRATCH_BYTES.  The
 * piece size is a multiple of any element's size, and the same on all ranks. */
#define SCRATCH_BYTES ((size_t)8 << 20)
size_t piece_of_each(const struct call *c);

/* Returns part i of `count` elements at data, cut into nearly equal parts. part_of() cuts one part
 * for each rank, and part_of_some() cuts `parts` parts. */
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
