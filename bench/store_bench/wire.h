/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - requests as bytes. */
#ifndef STORE_BENCH_WIRE_H
#define STORE_BENCH_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum command {
    VALIDATE,
    SET,
    COMPARE_SET,
    GET,
    ADD,
    CHECK,
    WAIT,
    DELETE_KEY = 8,
    MULTI_GET = 10,
    MULTI_SET,
    PING = 13,
    LIST_KEYS = 17,
};

#define MAGIC 0x3C85F7CEu
#define VALUE_BYTES 64

struct buffer {
    unsigned char *data;
    size_t size, room;
};

void put(struct buffer *b, const void *data, size_t bytes);
void put_u8(struct buffer *b, unsigned char value);
void put_u64(struct buffer *b, uint64_t value);
void put_blob(struct buffer *b, const void *data, size_t bytes);
void put_text(struct buffer *b, const char *text);
void put_ping(struct buffer *b);
void put_validate(struct buffer *b);

/* A command and its key: all of GET; the beginning of SET, ADD, COMPARE_SET. */
void put_key(struct buffer *b, enum command command, const char *key);

/* CHECK and WAIT of one key. */
void put_one(struct buffer *b, enum command command, const char *key);

/* n keys from first on; MULTI_SET has a value behind each. */
void put_many(struct buffer *b, enum command command, int tag, int first, int n);

/* The i-th key behind a prefix of that length: its own length. */
size_t number_key(char *key, size_t prefix, int i);

/* The number a case's keys begin with: no other case's do. */
int new_tag(void);

#endif
