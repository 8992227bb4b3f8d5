/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - writes and reads frames.  A frame is a header of 16 bytes, and then the data.  The
 * header has "CT>", the type (1 byte), and the node, the number and the size of the data (4 bytes
 * each, big-endian). */
#include "launcher/remote/frame.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "include/ct.h"

struct header {
    unsigned char mark[3], type;
    uint32_t node, number, size;
};

static const unsigned char mark[3] = { 'C', 'T', '>' };

int frame_send(struct bufferevent *to, enum frame_type type, int node, int number, const void *data,
               size_t size)
{
    struct header header = { .type = (unsigned char)type,
                             .node = htonl((uint32_t)node),
                             .number = htonl((uint32_t)number),
                             .size = htonl((uint32_t)size) };

    memcpy(header.mark, mark, sizeof mark);
    return bufferevent_write(to, &header, sizeof header) < 0
                   || (size > 0 && bufferevent_write(to, data, size) < 0)
               ? -1
               : 0;
}

int frame_peek(struct evbuffer *from, struct relay_frame *frame)
{
    struct header header;
    const ssize_t got = evbuffer_copyout(from, &header, sizeof header);
    size_t size;

    if (got > 0 && memcmp(header.mark, mark, (size_t)got < sizeof mark ? (size_t)got : sizeof mark))
        return -1;
    if (got < (ssize_t)sizeof header)
        return 0;
    size = ntohl(header.size);
    if (header.type == 0 || header.type >= FRAME_TYPES || size > FRAME_MOST)
        return -1;
    if (evbuffer_get_length(from) < sizeof header + size)
        return 0;
    *frame =
        (struct relay_frame){ header.type, (int)ntohl(header.node), (int)ntohl(header.number),
                              (const char *)evbuffer_pullup(from, (ssize_t)(sizeof header + size)),
                              size };
    if (!frame->data)
        return -1;
    frame->data += sizeof header;
    return 1;
}

void frame_drop(struct evbuffer *from, const struct relay_frame *frame)
{
    evbuffer_drain(from, sizeof(struct header) + frame->size);
}

int frame_is_own_version(const struct relay_frame *frame, char version[24])
{
    snprintf(version, 24, "%.*s", frame->size < 20 ? (int)frame->size : 20, frame->data);
    return !strcmp(version, CT_VERSION);
}
