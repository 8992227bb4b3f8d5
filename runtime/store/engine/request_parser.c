/* SPDX-License-Identifier: Apache-2.0 */
/* request_parser.c - collects the bytes of a request and parses them.
 *
 * shapes[] says for each command how many blobs it has and how many bytes the number behind the
 * blobs has.  The reader knows how many bytes the next step needs, and keeps the result of earlier
 * steps.  So no byte is parsed twice, even if a request comes in a thousand pieces.  Memory grows
 * only with the bytes that have come, since the client may claim any length.  A large blob is read
 * into a separate value, so that SET can keep it without a copy. */
#include "runtime/store/engine/request_parser.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BLOBS ((uint64_t)1 << 22)
#define LARGE ((size_t)64 << 10)     /* a blob of this size or more gets a separate value */
#define KEEP_ROOM ((size_t)64 << 10) /* larger buffers are freed after a request */

struct shape {
    signed char blobs; /* number of blobs; LIST or PAIRS if the request has a u64 with the number */
    signed char number; /* bytes of the number behind the blobs; 0 if the request has no number */
};

enum { LIST = -1, PAIRS = -2 }; /* the u64 counts blobs; the u64 counts pairs of blobs */

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

enum parse_step { COMMAND, HOW_MANY, LENGTH, BLOB, LARGE_BLOB, NUMBER, WHOLE };

#define NO_ROOM "the store has no memory left for its request (raise --store-memory)"

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

/* Sets the next step, which is the length of the next blob.  After the last blob, the next step is
 * the number or the end. */
static void parser_next_step(struct request_reader *r)
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
    parser_next_step(r);
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
    parser_next_step(r);
}

static void read_length(struct request_reader *r)
{
    const uint64_t size = u64_at(r, r->parsed);

    if (size > r->most || r->parsed + r->large_total + size > r->most) {
        bad(r, "it sent a request larger than is allowed (raise --store-request)");
        return;
    }
    r->parsed += 8;
    if (size < LARGE) {
        r->step = BLOB;
        r->need = r->parsed + size;
        return;
    }
    r->step = LARGE_BLOB;
    r->large_size = size;
    r->large_total += size;
    r->large = value_create(r->budget, NULL, 0);
    if (!r->large)
        bad(r, NO_ROOM);
}

static void parser_add_blob(struct request_reader *r, struct blob blob)
{
    if (r->count == r->blob_room) {
        const size_t room = r->blob_room ? 2 * r->blob_room : 4;
        struct blob *blobs =
            budget_resize(r->budget, r->blobs, r->blob_room * sizeof *blobs, room * sizeof *blobs);

        if (!blobs) {
            bad(r, NO_ROOM);
            value_release(blob.value);
            return;
        }
        r->blobs = blobs;
        r->blob_room = room;
    }
    r->blobs[r->count++] = blob;
    r->blobs_left--;
    parser_next_step(r);
}

static void read_blob(struct request_reader *r)
{
    const size_t start = r->parsed;

    r->parsed = r->need;
    parser_add_blob(r, (struct blob){ start, r->need - start, NULL });
}

/* Takes bytes of the large blob.  Returns the number of bytes taken. */
static size_t read_large(struct request_reader *r, const unsigned char *data, size_t bytes)
{
    struct value *value = r->large;
    const size_t left = r->large_size - value->size, n = left < bytes ? left : bytes;

    if (value->size + n > value->room) {
        const size_t room = 2 * (value->size + n);

        value = value_reserve(value, room < r->large_size ? room : r->large_size);
        if (!value) {
            bad(r, NO_ROOM);
            return 0;
        }
        r->large = value;
    }
    memcpy(value->data + value->size, data, n);
    value->size += n;
    if (value->size == r->large_size) {
        r->large = NULL;
        parser_add_blob(r, (struct blob){ 0, value->size, value });
    }
    return n;
}

static void parser_read_number(struct request_reader *r)
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

/* Runs all steps for which the bytes have come. */
static void parser_parse(struct request_reader *r)
{
    while (!r->bad && r->step != WHOLE && r->step != LARGE_BLOB && r->size >= r->need) {
        switch ((enum parse_step)r->step) {
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
            parser_read_number(r);
            break;
        case LARGE_BLOB:
        case WHOLE:
            break;
        }
    }
}

static int parser_make_room(struct request_reader *r, size_t size)
{
    size_t room = r->room ? r->room : 256;
    unsigned char *data;

    if (size <= r->room)
        return 0;
    while (room < size)
        room *= 2;
    data = budget_resize(r->budget, r->data, r->room, room);
    if (!data) {
        bad(r, NO_ROOM);
        return -1;
    }
    r->data = data;
    r->room = room;
    return 0;
}

static size_t read_small(struct request_reader *r, const unsigned char *data, size_t bytes)
{
    const size_t wanted = r->need - r->size, n = wanted < bytes ? wanted : bytes;

    if (parser_make_room(r, r->size + n) < 0)
        return 0;
    memcpy(r->data + r->size, data, n);
    r->size += n;
    return n;
}

size_t request_read(struct request_reader *r, const unsigned char *data, size_t bytes)
{
    size_t used = 0;

    if (r->size == 0)
        r->need = 1;
    while (!r->bad && r->step != WHOLE && used < bytes) {
        if (r->step == LARGE_BLOB)
            used += read_large(r, data + used, bytes - used);
        else
            used += read_small(r, data + used, bytes - used);
        parser_parse(r);
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
                                   .data = r->data,
                                   .blobs = r->blobs,
                                   .count = r->count,
                                   .number = r->number };
    return REQUEST_WHOLE;
}

int request_command(const struct request_reader *r)
{
    return r->size > 0 ? r->data[0] : -1;
}

static void release_large(struct request_reader *r)
{
    for (size_t i = 0; r->large_total > 0 && i < r->count; i++)
        value_release(r->blobs[i].value);
    value_release(r->large);
    r->large = NULL;
    r->large_total = 0;
}

static void free_buffers(struct request_reader *r)
{
    budget_free(r->budget, r->data, r->room);
    budget_free(r->budget, r->blobs, r->blob_room * sizeof *r->blobs);
    r->data = NULL;
    r->blobs = NULL;
    r->room = r->blob_room = 0;
}

void request_next(struct request_reader *r)
{
    release_large(r);
    if (r->room + r->blob_room * sizeof *r->blobs > KEEP_ROOM)
        free_buffers(r);
    r->size = r->parsed = r->need = r->count = 0;
    r->step = COMMAND;
    r->number = 0;
}

void request_trim(struct request_reader *r)
{
    if (r->size == 0)
        free_buffers(r);
}

void request_free(struct request_reader *r)
{
    release_large(r);
    free_buffers(r);
}
