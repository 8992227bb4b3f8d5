/* SPDX-License-Identifier: Apache-2.0 */
/* request_parser.h - the commands of PyTorch's store protocol, and a parser that takes a request in
 * pieces of any size. */
#ifndef RUNTIME_STORE_ENGINE_REQUEST_PARSER_H
#define RUNTIME_STORE_ENGINE_REQUEST_PARSER_H

#include <stdint.h>

#include "runtime/store/engine/value.h"

#define STORE_MAGIC 0x3C85F7CEu

enum store_command {
    STORE_VALIDATE,
    STORE_SET,
    STORE_COMPARE_SET,
    STORE_GET,
    STORE_ADD,
    STORE_CHECK,
    STORE_WAIT,
    STORE_NUM_KEYS,
    STORE_DELETE,
    STORE_APPEND,
    STORE_MULTI_GET,
    STORE_MULTI_SET,
    STORE_CANCEL_WAIT,
    STORE_PING,
    STORE_QUEUE_PUSH,
    STORE_QUEUE_POP,
    STORE_QUEUE_LEN,
    STORE_LIST_KEYS,
    STORE_BARRIER,
    STORE_COMMANDS
};

/* A key or value of a request.  A small blob is a part of the reader's buffer.  A large blob is a
 * separate value, which a command may hold. */
struct blob {
    size_t start, size;  /* start is the offset in the reader's buffer; 0 for a large blob */
    struct value *value; /* NULL if the blob is in the buffer */
};

struct request_args {
    enum store_command command;
    const unsigned char *data;
    const struct blob *blobs;
    size_t count;
    int64_t number; /* the u32 or i64 argument; 0 if the command has no such argument */
};

static inline struct bytes request_blob(const struct request_args *args, size_t which)
{
    const struct blob *blob = &args->blobs[which];

    return (struct bytes){ blob->value ? blob->value->data : args->data + blob->start, blob->size };
}

enum request_state { REQUEST_PARTIAL, REQUEST_WHOLE, REQUEST_BAD };

/* An empty reader is zeroed, except for its first two fields. */
struct request_reader {
    struct budget *budget;
    size_t most;         /* most bytes of a request */
    unsigned char *data; /* the bytes of the request that have come, without its large blobs */
    size_t size, room;
    size_t parsed; /* bytes of data that are parsed */
    size_t need;   /* value of `size` at which the next step can be parsed */
    struct blob *blobs;
    size_t count, blob_room;
    uint64_t blobs_left;            /* number of blobs that are not parsed yet */
    struct value *large;            /* the large blob that is being read; else NULL */
    size_t large_size, large_total; /* bytes of `large`; of all large blobs of the request */
    int step;
    int64_t number;
    int bad; /* true if the request is not valid or there is no memory for it */
    const char *why;
};

/* Takes bytes up to the end of the request.  Returns the number of bytes taken. */
size_t request_read(struct request_reader *reader, const unsigned char *data, size_t bytes);
/* Sets *args if the request is complete (REQUEST_WHOLE). */
enum request_state request_state(struct request_reader *reader, struct request_args *args);
/* Returns the command; -1 if no byte of the request has come. */
int request_command(const struct request_reader *reader);
/* Drops a request that was run, and begins the next one. */
void request_next(struct request_reader *reader);
/* Frees the buffers if no byte of a request has come. */
void request_trim(struct request_reader *reader);
void request_free(struct request_reader *reader);

#endif
