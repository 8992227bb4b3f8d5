/* SPDX-License-Identifier: Apache-2.0 */
/* send_queue.h - what a client is still to be sent.  Large values are lent, not
 * copied, so a value that a thousand clients read lies in memory once. */
#ifndef RUNTIME_STORE_ENGINE_SEND_QUEUE_H
#define RUNTIME_STORE_ENGINE_SEND_QUEUE_H

#include "runtime/store/engine/value.h"

struct chunk;

/* Zeroed, but for the budget, is empty. */
struct outbox {
    struct budget *budget;
    struct chunk *first, *last;
    size_t bytes;
};

int outbox_add(struct outbox *box, const void *data, size_t bytes); /* -1: no memory */
int outbox_lend(struct outbox *box, struct value *value);

/* One send of some 100 KiB at most.  0, or -1 with errno: the connection is broken
 * (EAGAIN: it takes no more now). */
int outbox_send(struct outbox *box, int fd);
void outbox_empty(struct outbox *box);

#endif
