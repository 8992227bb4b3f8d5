/* SPDX-License-Identifier: Apache-2.0 */
/* send_queue.c - a queue of chunks, sent by sendmsg() as far as the socket takes them. */
#include "runtime/store/engine/send_queue.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define CHUNK_BYTES 4000
#define SEND_PARTS 16
#define SEND_BYTES ((size_t)128 << 10) /* of one call: others wait for it */

struct chunk {
    struct chunk *next;
    struct value *value; /* NULL: the bytes are in data */
    size_t from, to, room;
    unsigned char data[];
};

static void append(struct outbox *box, struct chunk *chunk)
{
    *(box->last ? &box->last->next : &box->first) = chunk;
    box->last = chunk;
}

int outbox_add(struct outbox *box, const void *data, size_t bytes)
{
    struct chunk *chunk = box->last;

    if (!chunk || chunk->value || chunk->room - chunk->to < bytes) {
        /* A lonely answer gets just its room; what follows an unread one, a whole chunk. */
        const size_t usual = box->first ? CHUNK_BYTES : 64, room = bytes > usual ? bytes : usual;

        chunk = budget_alloc(box->budget, sizeof *chunk + room);
        if (!chunk)
            return -1;
        *chunk = (struct chunk){ .room = room };
        append(box, chunk);
    }
    memcpy(chunk->data + chunk->to, data, bytes);
    chunk->to += bytes;
    box->bytes += bytes;
    return 0;
}

int outbox_lend(struct outbox *box, struct value *value)
{
    struct chunk *chunk = budget_alloc(box->budget, sizeof *chunk);

    if (!chunk)
        return -1;
    *chunk = (struct chunk){ .value = value_hold(value), .to = value->size };
    append(box, chunk);
    box->bytes += value->size;
    return 0;
}

static void drop_first(struct outbox *box)
{
    struct chunk *chunk = box->first;

    box->first = chunk->next;
    if (!box->first)
        box->last = NULL;
    value_release(chunk->value);
    budget_free(box->budget, chunk, sizeof *chunk + chunk->room);
}

static void sent(struct outbox *box, size_t bytes)
{
    box->bytes -= bytes;
    while (box->first && bytes >= box->first->to - box->first->from) {
        bytes -= box->first->to - box->first->from;
        drop_first(box);
    }
    if (bytes > 0)
        box->first->from += bytes;
}

int outbox_send(struct outbox *box, int fd)
{
    struct iovec parts[SEND_PARTS];
    struct msghdr message = { .msg_iov = parts };
    size_t bytes = 0;
    ssize_t n;

    for (struct chunk *chunk = box->first;
         chunk && message.msg_iovlen < SEND_PARTS && bytes < SEND_BYTES; chunk = chunk->next) {
        unsigned char *data = chunk->value ? chunk->value->data : chunk->data;
        size_t size = chunk->to - chunk->from;

        if (size > SEND_BYTES - bytes)
            size = SEND_BYTES - bytes;
        parts[message.msg_iovlen++] = (struct iovec){ data + chunk->from, size };
        bytes += size;
    }
    n = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0)
        return -1;
    sent(box, (size_t)n);
    return 0;
}

void outbox_empty(struct outbox *box)
{
    while (box->first)
        drop_first(box);
    box->bytes = 0;
}
