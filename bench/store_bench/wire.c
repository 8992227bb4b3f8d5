/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - see wire.h. */
#include "bench/store_bench/stats.h"
#include "bench/store_bench/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void put(struct buffer *b, const void *data, size_t bytes)
{
    if (b->size + bytes > b->room) {
        b->room = 2 * (b->size + bytes);
        b->data = realloc(b->data, b->room);
        if (!b->data)
            die("memory");
    }
    memcpy(b->data + b->size, data, bytes);
    b->size += bytes;
}

void put_u8(struct buffer *b, unsigned char value)
{
    put(b, &value, sizeof value);
}

void put_u64(struct buffer *b, uint64_t value)
{
    put(b, &value, sizeof value);
}

void put_blob(struct buffer *b, const void *data, size_t bytes)
{
    put_u64(b, bytes);
    put(b, data, bytes);
}

void put_text(struct buffer *b, const char *text)
{
    put_blob(b, text, strlen(text));
}

void put_ping(struct buffer *b)
{
    const uint32_t nonce = (uint32_t)getpid();

    put_u8(b, PING);
    put(b, &nonce, sizeof nonce);
}

void put_validate(struct buffer *b)
{
    const uint32_t magic = MAGIC;

    put_u8(b, VALIDATE);
    put(b, &magic, sizeof magic);
}

void put_key(struct buffer *b, enum command command, const char *key)
{
    put_u8(b, (unsigned char)command);
    put_text(b, key);
}

void put_one(struct buffer *b, enum command command, const char *key)
{
    put_u8(b, (unsigned char)command);
    put_u64(b, 1);
    put_text(b, key);
}

/* printf would take longer to write a message than a server to understand it. */
size_t number_key(char *key, size_t prefix, int i)
{
    for (size_t digit = 6; digit-- > 0; i /= 10)
        key[prefix + digit] = (char)('0' + i % 10);
    return prefix + 6;
}

void put_many(struct buffer *b, enum command command, int tag, int first, int n)
{
    char key[64], value[VALUE_BYTES];
    const size_t prefix = (size_t)snprintf(key, sizeof key, "/%d/key/", tag);

    memset(value, 'v', sizeof value);
    put_u8(b, (unsigned char)command);
    put_u64(b, (uint64_t)n);
    for (int i = first; i < first + n; i++) {
        put_blob(b, key, number_key(key, prefix, i));
        if (command == MULTI_SET)
            put_blob(b, value, sizeof value);
    }
}

int new_tag(void)
{
    static int tag;

    return ++tag;
}
