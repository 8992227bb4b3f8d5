/* SPDX-License-Identifier: Apache-2.0 */
/* store_request.c - gathering one request.
 *
 * Every command is a row: how many blobs, whether they are a counted list, and
 * which number comes last.  The reader always knows how many bytes it needs
 * before it can go on; it keeps what was understood, so a request that comes in
 * a thousand pieces is parsed once, and memory grows with what really came,
 * never with what a length claims. */
#include "runtime/store_request.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t)1 << 30) /* of one request; PyTorch's own limit is 8 MiB a value */
#define MOST_BLOBS ((uint64_t)1 << 22)
#define KEEP_ROOM ((size_t)64 << 10) /* of a finished request's memory, for the next */

struct shape {
    signed char blobs;  /* LIST, PAIRS: a u64 says how many */
    signed char number; /* bytes of the number behind them: 0, 4, 8 */
};

enum { LIST = -1, PAIRS = -2 };

static const struct shape shapes[STORE_COMMANDS] = {
    [STORE_VALIDATE] = { 0, 4 },     [STORE_SET] = { 2, 0 },
    [STORE_COMPARE_SET] = { 3, 0 },  [STORE_GET] = { 1, 0 },
    [STORE_ADD] = { 1, 8 },          [STORE_CHECK] = { LIST, 0 },
    [STORE_WAIT] = { LIST, 0 },      [STORE_NUM_KEYS] = { 0, 0 },
    [STORE_DELETE] = { 1, 0 },       [STORE_APPEND] = { 2, 0 },
    [STORE_MULTI_GET] = { LIST, 0 }, [STORE_MULTI_SET] = { PAIRS, 0 },
    [STORE_CANCEL_WAIT] = { 0, 0 },  [STORE_PING] = { 0, 4 },
    [STORE_QUEUE_PUSH] = { 2, 0 },   [STORE_QUEUE_POP] = { 1, 0 },
    [STORE_QUEUE_LEN] = { 1, 0 },    [STORE_LIST_KEYS] = { 0, 0 },
    [STORE_BARRIER] = { 1, 8 },
};

enum step { COMMAND, HOW_MANY, LENGTH, BLOB, NUMBER, WHOLE };

static void bad(struct request_reader *r, const char *why)
{
    r->bad = 1;
    r->why = why;
}

static uint64_t u64_at(const struct request_reader *r, size_t at)
{
    uint64_t value;

    memcpy(&value, r->data + at, sizeof value);
    return value;
}

/* The step after the last blob, or the next blob's length. */
static void next_step(struct request_reader *r)
{
    const struct shape *shape = &shapes[r->data[0]];

    r->step = r->blobs_left > 0 ? LENGTH : shape->number ? NUMBER : WHOLE;
    r->need = r->parsed + (r->step == LENGTH ? 8 : r->step == NUMBER ? (size_t)shape->number : 0);
}

static void read_command(struct request_reader *r)
{
    if (r->data[0] >= STORE_COMMANDS) {
        bad(r, "it sent a command that does not exist");
        return;
    }
    r->parsed = 1;
    if (shapes[r->data[0]].blobs < 0) {
        r->step = HOW_MANY;
        r->need = r->parsed + 8;
        return;
    }
    r->blobs_left = (uint64_t)shapes[r->data[0]].blobs;
    next_step(r);
}

static void read_how_many(struct request_reader *r)
{
    const uint64_t count = u64_at(r, r->parsed);

    if (count > MOST_BLOBS / 2) {
        bad(r, "it named more keys in one request than are allowed");
        return;
    }
    r->parsed += 8;
    r->blobs_left = shapes[r->data[0]].blobs == PAIRS ? 2 * count : count;
    next_step(r);
}

static void read_length(struct request_reader *r)
{
    const uint64_t size = u64_at(r, r->parsed);

    if (size > MOST_BYTES || r->parsed + size > MOST_BYTES) {
        bad(r, "it sent a request larger than is allowed");
        return;
    }
    r->parsed += 8;
    r->step = BLOB;
    r->need = r->parsed + size;
}

/* The buffer may still move: until the request is whole, data holds an offset. */
static void read_blob(struct request_reader *r)
{
    if (r->count == r->blob_room) {
        const size_t room = r->blob_room ? 2 * r->blob_room : 4;
        struct bytes *blobs = realloc(r->blobs, room * sizeof *blobs);

        if (!blobs) {
            bad(r, "there is no memory for its request");
            return;
        }
        r->blobs = blobs;
        r->blob_room = room;
    }
    r->blobs[r->count++] =
        (struct bytes){ (const void *)(uintptr_t)r->parsed, r->need - r->parsed };
    r->parsed = r->need;
    r->blobs_left--;
    next_step(r);
}

static void read_number(struct request_reader *r)
{
    uint32_t small;

    if (shapes[r->data[0]].number == 8) {
        r->number = (int64_t)u64_at(r, r->parsed);
    } else {
        memcpy(&small, r->data + r->parsed, sizeof small);
        r->number = small;
    }
    r->parsed = r->need;
    r->step = WHOLE;
}

static void finish(struct request_reader *r)
{
    for (size_t i = 0; i < r->count; i++)
        r->blobs[i].data = r->data + (uintptr_t)r->blobs[i].data;
}

/* As far as the bytes that are there allow. */
static void parse(struct request_reader *r)
{
    while (!r->bad && r->step != WHOLE && r->size >= r->need) {
        switch ((enum step)r->step) {
        case COMMAND:
            read_command(r);
            break;
        case HOW_MANY:
            read_how_many(r);
            break;
        case LENGTH:
            read_length(r);
            break;
        case BLOB:
            read_blob(r);
            break;
        case NUMBER:
            read_number(r);
            break;
        case WHOLE:
            break;
        }
    }
    if (!r->bad && r->step == WHOLE)
        finish(r);
}

static int make_room(struct request_reader *r, size_t size)
{
    size_t room = r->room ? r->room : 256;
    unsigned char *data;

    if (size <= r->room)
        return 0;
    while (room < size)
        room *= 2;
    data = realloc(r->data, room);
    if (!data) {
        bad(r, "there is no memory for its request");
        return -1;
    }
    r->data = data;
    r->room = room;
    return 0;
}

size_t request_read(struct request_reader *r, const unsigned char *data, size_t bytes)
{
    size_t used = 0;

    if (r->size == 0)
        r->need = 1;
    while (!r->bad && r->step != WHOLE && used < bytes) {
        const size_t wanted = r->need - r->size;
        const size_t n = wanted < bytes - used ? wanted : bytes - used;

        if (make_room(r, r->size + n) < 0)
            break;
        memcpy(r->data + r->size, data + used, n);
        r->size += n;
        used += n;
        parse(r);
    }
    return used;
}

enum request_state request_state(struct request_reader *r, struct request_args *args)
{
    if (r->bad)
        return REQUEST_BAD;
    if (r->step != WHOLE)
        return REQUEST_PARTIAL;
    *args = (struct request_args){ .command = (enum store_command)r->data[0],
                                   .blobs = r->blobs,
                                   .count = r->count,
                                   .number = r->number };
    return REQUEST_WHOLE;
}

int request_command(const struct request_reader *r)
{
    return r->size > 0 ? r->data[0] : -1;
}

void request_next(struct request_reader *r)
{
    if (r->room > KEEP_ROOM) {
        free(r->data);
        r->data = NULL;
        r->room = 0;
    }
    if (r->blob_room * sizeof *r->blobs > KEEP_ROOM) {
        free(r->blobs);
        r->blobs = NULL;
        r->blob_room = 0;
    }
    r->size = r->parsed = r->need = r->count = 0;
    r->step = COMMAND;
    r->number = 0;
}

void request_done(struct request_reader *r)
{
    free(r->data);
    free(r->blobs);
    memset(r, 0, sizeof *r);
}
