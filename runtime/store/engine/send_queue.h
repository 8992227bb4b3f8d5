/* SPDX-License-Identifier: Apache-2.0 */
/* send_queue.h - a queue of bytes that wait until a client's socket takes them.  The queue does not
 * copy large values, so a value that a thousand clients read is in memory only once. */
#ifndef RUNTIME_STORE_ENGINE_SEND_QUEUE_H
#define RUNTIME_STORE_ENGINE_SEND_QUEUE_H

#include "runtime/store/engine/value.h"

struct chunk;
struct secure_channel; /* runtime/net/secure_channel.h */

/* An empty queue is zeroed, except for `budget`. */
struct send_queue {
    struct budget *budget;
    struct chunk *first, *last;
    size_t bytes;
};

/* Both return -1 if out of memory.  The first copies the bytes.  The second calls value_hold(). */
int send_queue_add(struct send_queue *queue, const void *data, size_t bytes);
int send_queue_add_value(struct send_queue *queue, struct value *value);

/* Sends up to 128 KiB with one call, on the channel if channel is not NULL.  Returns 0, or -1 with
 * errno.  EAGAIN means that the socket takes no more now.  Any other error means that the
 * connection is broken. */
int send_queue_send(struct send_queue *queue, struct secure_channel *channel, int fd);
void send_queue_clear(struct send_queue *queue);

#endif
