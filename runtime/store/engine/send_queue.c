/* SPDX-License-Identifier: Apache-2.0 */
/* send_queue.c - a queue of chunks of bytes.  sendmsg() sends as many bytes as the socket takes. */
#include "runtime/store/engine/send_queue.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/net/secure_channel.h"

#define CHUNK_BYTES 4000
#define SEND_PARTS 16                  /* most chunks in a sendmsg() */
#define SEND_BYTES ((size_t)128 << 10) /* most bytes in a sendmsg(), since other clients wait */

struct chunk {
    struct chunk *next;
    struct value *value; /* has the bytes; NULL if the bytes are in data[] */
    size_t from, to, room;
    unsigned char data[];
};

static void send_queue_append(struct send_queue *queue, struct chunk *chunk)
{
    *(queue->last ? &queue->last->next : &queue->first) = chunk;
    queue->last = chunk;
}

int send_queue_add(struct send_queue *queue, const void *data, size_t bytes)
{
    struct chunk *chunk = queue->last;

    if (!chunk || chunk->value || chunk->room - chunk->to < bytes) {
        /* If the queue is empty, the chunk is small; else it has room for more replies. */
        const size_t usual = queue->first ? CHUNK_BYTES : 64, room = bytes > usual ? bytes : usual;

        chunk = budget_alloc(queue->budget, sizeof *chunk + room);
        if (!chunk)
            return -1;
        *chunk = (struct chunk){ .room = room };
        send_queue_append(queue, chunk);
    }
    memcpy(chunk->data + chunk->to, data, bytes);
    chunk->to += bytes;
    queue->bytes += bytes;
    return 0;
}

int send_queue_add_value(struct send_queue *queue, struct value *value)
{
    struct chunk *chunk = budget_alloc(queue->budget, sizeof *chunk);

    if (!chunk)
        return -1;
    *chunk = (struct chunk){ .value = value_hold(value), .to = value->size };
    send_queue_append(queue, chunk);
    queue->bytes += value->size;
    return 0;
}

static void drop_first(struct send_queue *queue)
{
    struct chunk *chunk = queue->first;

    queue->first = chunk->next;
    if (!queue->first)
        queue->last = NULL;
    value_release(chunk->value);
    budget_free(queue->budget, chunk, sizeof *chunk + chunk->room);
}

static void send_queue_sent(struct send_queue *queue, size_t bytes)
{
    queue->bytes -= bytes;
    while (queue->first && bytes >= queue->first->to - queue->first->from) {
        bytes -= queue->first->to - queue->first->from;
        drop_first(queue);
    }
    if (bytes > 0)
        queue->first->from += bytes;
}

int send_queue_send(struct send_queue *queue, struct secure_channel *channel, int fd)
{
    struct iovec parts[SEND_PARTS];
    struct msghdr message = { .msg_iov = parts };
    size_t bytes = 0;
    ssize_t n;

    for (struct chunk *chunk = queue->first;
         chunk && message.msg_iovlen < SEND_PARTS && bytes < SEND_BYTES; chunk = chunk->next) {
        unsigned char *data = chunk->value ? chunk->value->data : chunk->data;
        size_t size = chunk->to - chunk->from;

        if (size > SEND_BYTES - bytes)
            size = SEND_BYTES - bytes;
        parts[message.msg_iovlen++] = (struct iovec){ data + chunk->from, size };
        bytes += size;
    }
    n = channel ? secure_channel_write(channel, parts, (int)message.msg_iovlen)
                : sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0)
        return -1;
    send_queue_sent(queue, (size_t)n);
    return 0;
}

void send_queue_clear(struct send_queue *queue)
{
    while (queue->first)
        drop_first(queue);
    queue->bytes = 0;
}
