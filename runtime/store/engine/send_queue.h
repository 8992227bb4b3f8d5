/* SPDX-License-Identifier: Apache-2.0 */
/* send_queue.h - bytes that wait until a client's socket takes them.  The queue holds large values
 * instead of copying them, so a value that a thousand clients read lies in memory once. */
#ifndef RUNTIME_STORE_ENGINE_SEND_QUEUE_H
#define RUNTIME_STORE_ENGINE_SEND_QUEUE_H

#include "runtime/store/engine/value.h"

struct chunk;
struct secure_channel; /* runtime/net/secure_channel.h */

/* An empty queue is zeroed, but for its budget. */
struct send_queue {
    struct budget *budget;
    struct chunk *first, *last;
    size_t bytes;
};

int send_queue_add(struct send_queue *queue, const void *data, size_t bytes); /* -1: no memory */
int send_queue_add_value(struct send_queue *queue, struct value *value);

/* Sends once, at most 128 KiB, on the channel if it is not NULL.  -1 with errno: the connection is
 * broken (EAGAIN: the socket takes no more now). */
int send_queue_send(struct send_queue *queue, struct secure_channel *channel, int fd);
void send_queue_clear(struct send_queue *queue);

#endif
