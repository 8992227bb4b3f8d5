/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - memory that is counted against a limit, and values that several holders share.
 *
 * Each large block has its own mapping.  With malloc(), a request of several megabytes would be
 * copied each time it grows, and free() of a value of 64 MiB would unmap all of it at once.  Either
 * would stall all clients for milliseconds. */
#include "runtime/store/engine/value.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE ((size_t)256 << 10) /* a block of this size or more has its own mapping */
#define PIECE ((size_t)512 << 10) /* most bytes that one call unmaps */

/* A freed block that is still mapped.  This struct is at the start of the block. */
struct garbage {
    struct garbage *next;
    size_t bytes;
};

static size_t pages(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

static void defer_unmap(struct budget *budget, void *memory, size_t bytes)
{
    struct garbage *garbage = memory;

    *garbage = (struct garbage){ budget->garbage, pages(bytes) };
    budget->garbage = garbage;
}

/* Unmaps a piece at the end of a freed block, since the block's front has the struct garbage. */
int budget_sweep(struct budget *budget)
{
    struct garbage *garbage = budget->garbage;

    if (!garbage)
        return 0;
    if (garbage->bytes > PIECE) {
        garbage->bytes -= PIECE;
        munmap((char *)garbage + garbage->bytes, PIECE);
        return 1;
    }
    budget->garbage = garbage->next;
    munmap(garbage, garbage->bytes);
    return budget->garbage != NULL;
}

static void *map(size_t bytes)
{
    void *memory =
        mmap(NULL, pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static void *remap(void *memory, size_t from, size_t to)
{
    void *moved = mremap(memory, pages(from), pages(to), MREMAP_MAYMOVE);

    return moved == MAP_FAILED ? NULL : moved;
}

/* Copies a small block to a new large block.  A large block can grow without a copy. */
static void *outgrow(void *memory, size_t from, size_t to)
{
    void *moved = map(to);

    if (moved && from > 0) {
        memcpy(moved, memory, from);
        free(memory);
    }
    return moved;
}

/* `to` must not be less than `from`, since blocks do not shrink. */
void *budget_resize(struct budget *budget, void *memory, size_t from, size_t to)
{
    void *moved;

    if (to - from > budget->limit - budget->used)
        return NULL;
    if (to < LARGE)
        moved = realloc(memory, to);
    else
        moved = from < LARGE ? outgrow(memory, from, to) : remap(memory, from, to);
    if (moved)
        budget->used += to - from;
    return moved;
}

void *budget_alloc(struct budget *budget, size_t bytes)
{
    return budget_resize(budget, NULL, 0, bytes);
}

void budget_free(struct budget *budget, void *memory, size_t bytes)
{
    if (!memory)
        return;
    budget->used -= bytes;
    if (bytes < LARGE)
        free(memory);
    else
        defer_unmap(budget, memory, bytes);
}

struct value *value_create(struct budget *budget, const void *data, size_t bytes)
{
    struct value *value = budget_alloc(budget, sizeof *value + bytes);

    if (!value)
        return NULL;
    *value = (struct value){ .budget = budget, .size = bytes, .room = bytes, .holders = 1 };
    if (bytes > 0)
        memcpy(value->data, data, bytes);
    return value;
}

struct value *value_reserve(struct value *value, size_t room)
{
    struct value *larger;

    if (room <= value->room)
        return value;
    larger = budget_resize(value->budget, value, sizeof *value + value->room, sizeof *value + room);
    if (larger)
        larger->room = room;
    return larger;
}

struct value *value_hold(struct value *value)
{
    value->holders++;
    return value;
}

void value_release(struct value *value)
{
    if (value && --value->holders == 0)
        budget_free(value->budget, value, sizeof *value + value->room);
}
