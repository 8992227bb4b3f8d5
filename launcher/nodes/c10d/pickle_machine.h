/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_machine.h - the machine that a pickle is a program for, and its operations.
 * Between pickle_read.c, which runs it, and pickle_values.c, which has the operations
 * that build plain values. */
#ifndef LAUNCHER_NODES_C10D_PICKLE_MACHINE_H
#define LAUNCHER_NODES_C10D_PICKLE_MACHINE_H

#include "launcher/nodes/c10d/pickle.h"

struct pickle_row {
    struct pickle_value **list;
    size_t count, room;
};

struct machine {
    const unsigned char *begin, *at, *end;
    struct pickle *pickle;
    struct pickle_row stack; /* NULL is a mark */
    struct pickle_row memo;
    struct why *why;
};

/* All that return a pointer return NULL, and all that return int -1, when the sentence is
 * written; but for pop() and top(): there is no such value. */
void *pickle_allocate(struct pickle *pickle, size_t size, struct why *why);

int machine_refuse(struct machine *m, const char *what);
int machine_append(struct machine *m, struct pickle_row *row, struct pickle_value *value);
struct pickle_value *machine_push(struct machine *m, enum pickle_kind kind); /* a new one */
struct pickle_value *machine_top(struct machine *m);
struct pickle_value *machine_pop(struct machine *m, enum pickle_kind kind);
const unsigned char *machine_take(struct machine *m, size_t size);
/* Little-endian; size is at most 8. */
int machine_number(struct machine *m, int size, uint64_t *number);

typedef int operation(struct machine *m, unsigned char code);

operation op_constant, op_int, op_long, op_text;
operation op_empty, op_mark, op_add_all, op_add_one, op_tuple, op_marked;

#endif
