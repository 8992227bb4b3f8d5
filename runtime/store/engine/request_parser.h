/* SPDX-License-Identifier: Apache-2.0 */
/* request_parser.h - PyTorch's store protocol: its commands, and a parser that may stop at any
 * byte. */
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

/* One key or value of a request: a part of the reader's buffer or, if it is large, a separate value
 * that the command may hold. */
struct blob {
    size_t start, size;
    struct value *value; /* NULL: in the buffer */
};

struct request_args {
    enum store_command command;
    const unsigned char *data;
    const struct blob *blobs;
    size_t count;
    int64_t number; /* the u32 or i64 argument, where there is one */
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
    size_t most;         /* bytes of one request */
    unsigned char *data; /* the request so far, without its large blobs */
    size_t size, room;
    size_t parsed; /* bytes parsed */
    size_t need;   /* bytes that must be there for the next step */
    struct blob *blobs;
    size_t count, blob_room;
    uint64_t blobs_left; /* blobs that are not parsed yet */
    struct value *large; /* the large blob that is being read */
    size_t large_size, large_total;
    int step;
    int64_t number;
    int bad;
    const char *why;
};

/* Takes bytes up to the end of the request.  Returns how many it took. */
size_t request_read(struct request_reader *reader, const unsigned char *data, size_t bytes);
enum request_state request_state(struct request_reader *reader, struct request_args *args);
int request_command(const struct request_reader *reader); /* -1: no byte came yet */
void request_next(struct request_reader *reader); /* begins the next request after one was run */
void request_trim(struct request_reader *reader); /* frees memory between two requests */
void request_free(struct request_reader *reader);

#endif
