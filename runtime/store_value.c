/* SPDX-License-Identifier: Apache-2.0 */
/* store_value.c - memory that is counted, values that are shared. */
#include "runtime/store_value.h"

#include <stdlib.h>
#include <string.h>

void *budget_resize(struct budget *budget, void *memory, size_t from, size_t to)
{
    void *moved;

    if (to > from && to - from > budget->limit - budget->used)
        return NULL;
    moved = realloc(memory, to);
    if (moved)
        budget->used = budget->used - from + to;
    return moved;
}

void *budget_alloc(struct budget *budget, size_t bytes)
{
    return budget_resize(budget, NULL, 0, bytes);
}

void budget_free(struct budget *budget, void *memory, size_t bytes)
{
    free(memory);
    if (memory)
        budget->used -= bytes;
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
