/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_write.c - the opcodes of protocol 4, without frames. */
#include "launcher/nodes/c10d/pickle.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32 };

static int make_room(struct pickle_out *out, size_t size)
{
    const size_t wanted = out->size + size;
    size_t room = out->room ? out->room : 256;
    unsigned char *data;

    if (out->failed || (out->most && wanted > out->most))
        return -1;
    if (wanted <= out->room)
        return 0;
    while (room < wanted)
        room *= 2;
    if (!(data = realloc(out->data, room)))
        return -1;
    out->data = data;
    out->room = room;
    return 0;
}

void put_bytes(struct pickle_out *out, const void *bytes, size_t size)
{
    if (make_room(out, size) < 0) {
        out->failed = 1;
        return;
    }
    if (size > 0)
        memcpy(out->data + out->size, bytes, size);
    out->size += size;
}

void put_byte(struct pickle_out *out, unsigned char byte)
{
    put_bytes(out, &byte, 1);
}

static void put_little_endian(struct pickle_out *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        put_byte(out, (unsigned char)(value >> (8 * i)));
}

void put_bool(struct pickle_out *out, int value)
{
    put_byte(out, value ? 0x88 : 0x89);
}

void put_int(struct pickle_out *out, int64_t value)
{
    if (value >= INT32_MIN && value <= INT32_MAX) {
        put_byte(out, 'J');
        put_little_endian(out, (uint64_t)value, 4);
    } else {
        put_bytes(out, "\x8a\x08", 2);
        put_little_endian(out, (uint64_t)value, 8);
    }
}

/* Its size in one byte or in four, each with an opcode of its own. */
static void put_sized(struct pickle_out *out, unsigned char small, unsigned char large,
                      const void *data, size_t size)
{
    if (size > UINT32_MAX) {
        out->failed = 1;
        return;
    }
    put_byte(out, size < 256 ? small : large);
    put_little_endian(out, size, size < 256 ? 1 : 4);
    put_bytes(out, data, size);
}

void put_string(struct pickle_out *out, const char *text, size_t size)
{
    put_sized(out, 0x8c, 'X', text, size);
}

void put_global(struct pickle_out *out, enum pickle_global global)
{
    const struct pickle_name *name = &pickle_names[global];

    put_string(out, name->module, strlen(name->module));
    put_string(out, name->name, strlen(name->name));
    put_byte(out, 0x93);
}

uint32_t put_memo(struct pickle_out *out)
{
    put_byte(out, 0x94);
    return out->memos++;
}

void put_again(struct pickle_out *out, uint32_t memo)
{
    put_byte(out, memo < 256 ? 'h' : 'j');
    put_little_endian(out, memo, memo < 256 ? 1 : 4);
}

/* ---- A tree ------------------------------------------------------------------- */

static void put_tree(struct pickle_out *out, const struct pickle_value *value, int depth);

/* What begins it, and the opcode that puts the items behind the mark into it. */
static void put_items(struct pickle_out *out, const struct pickle_value *value, int depth)
{
    static const struct {
        unsigned char begin, end;
    } of[] = {
        [PICKLE_TUPLE] = { 0, 't' },      [PICKLE_LIST] = { ']', 'e' },
        [PICKLE_DICT] = { '}', 'u' },     [PICKLE_SET] = { 0x8f, 0x90 },
        [PICKLE_FROZENSET] = { 0, 0x91 },
    };

    if (of[value->kind].begin)
        put_byte(out, of[value->kind].begin);
    put_byte(out, '(');
    for (const struct pickle_item *i = value->as.items.first; i && !out->failed; i = i->next)
        put_tree(out, i->value, depth + 1);
    put_byte(out, of[value->kind].end);
}

static void put_object(struct pickle_out *out, const struct pickle_value *value, int depth)
{
    put_global(out, value->as.made.of);
    put_bytes(out, ")\x81", 2);
    if (!value->as.made.with)
        return;
    put_tree(out, value->as.made.with, depth + 1);
    put_byte(out, 'b');
}

static void put_call(struct pickle_out *out, const struct pickle_value *value, int depth)
{
    put_global(out, value->as.made.of);
    put_tree(out, value->as.made.with, depth + 1);
    put_byte(out, 'R');
}

/* Each value takes at least a byte, so the limit on bytes is one on time: a few
 * values that stand in each other twice would otherwise double with each level. */
static void put_tree(struct pickle_out *out, const struct pickle_value *value, int depth)
{
    const unsigned char *data = value->as.text.data;
    const size_t size = value->as.text.size;

    if (depth > DEEPEST)
        out->failed = 1;
    if (out->failed)
        return;
    switch (value->kind) {
    case PICKLE_NONE:
        put_byte(out, 'N');
        break;
    case PICKLE_BOOL:
        put_bool(out, value->as.number != 0);
        break;
    case PICKLE_INT:
        put_int(out, value->as.number);
        break;
    case PICKLE_LONG:
        put_sized(out, 0x8a, 0x8b, data, size);
        break;
    case PICKLE_FLOAT:
        put_byte(out, 'G');
        put_bytes(out, data, size);
        break;
    case PICKLE_STRING:
        put_sized(out, 0x8c, 'X', data, size);
        break;
    case PICKLE_BYTES:
        put_sized(out, 'C', 'B', data, size);
        break;
    case PICKLE_TUPLE:
    case PICKLE_LIST:
    case PICKLE_DICT:
    case PICKLE_SET:
    case PICKLE_FROZENSET:
        put_items(out, value, depth);
        break;
    case PICKLE_GLOBAL:
        put_global(out, value->as.made.of);
        break;
    case PICKLE_OBJECT:
        put_object(out, value, depth);
        break;
    case PICKLE_CALL:
        put_call(out, value, depth);
        break;
    }
}

int put_value(struct pickle_out *out, const struct pickle_value *value)
{
    put_tree(out, value, 0);
    return out->failed ? -1 : 0;
}
