/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - what the files of the interpreter share: instructions as they are executed.
 *
 * Every operand is a slot of 64 bits: registers, immediates (which nobody writes) and special
 * registers alike.  An instruction reads as many low bits of a slot as its type has, so what
 * lies above them does not matter. */
#ifndef TESTS_PTX_PARTS_H
#define TESTS_PTX_PARTS_H

#include "tests/ptx/ptx.h"

enum { MOST_OPERANDS = 5, MOST_SHAPE = 16, MOST_WHY = 128 };

struct thread;
struct instruction;
typedef void act(struct thread *thread, const struct instruction *i);

/* An instruction that is known, with the operands that it takes, its shape.  A letter each: p a
 * predicate, h w d a register of 16, 32, 64 bits, H and W one of so many at least, L a label, P the
 * parameter's name, m an address in [] (always the last); {} a vector.  In a statement # is an
 * immediate, which fits h, w and d. */
struct row {
    const char *name, *shape;
    act *act;
};

struct rows {
    const struct row *row;
    size_t count;
};

extern const struct rows integer_rows, float_rows, move_rows;

struct instruction {
    act *act;
    uint32_t at[MOST_OPERANDS]; /* slots, as they are written; that of r of [r+7] behind them */
    uint32_t guard;             /* the slot of a predicate; it is executed if that is `wanted` */
    uint32_t wanted;
    uint32_t line;
    uint64_t more;    /* the 7 of [r+7], or the index of the instruction that is jumped to */
    const char *text; /* as it stands in the file */
    /* of loads and stores: */
    uint8_t bytes, parts, is_signed, is_parameter;
};

enum { ALWAYS, TID, NTID, CTAID, NCTAID, FIRST_SLOT }; /* slots of every kernel; [ALWAYS] is 1 */

struct registers {
    char prefix[8];
    uint32_t first, count;
    char letter;
};

struct label {
    const char *name; /* up to its : or ; */
    uint32_t index;
};

enum { MOST_KINDS = 8 };

struct kernel {
    char name[64], parameter[80];
    uint64_t parameter_at, parameter_bytes; /* where it begins, for the kernel */
    unsigned most_threads;
    struct registers registers[MOST_KINDS];
    uint32_t kinds, slots, count, labels;
    uint32_t constants; /* the first one's slot */
    uint64_t *slot;     /* as a launch begins */
    struct instruction *code;
    unsigned char *ran; /* [count + 1] */
    struct label *label;
};

struct ptx {
    char *text;
    struct kernel *kernel;
    size_t count;
};

struct thread {
    uint64_t *slot;
    const struct kernel *kernel;
    const struct ptx_launch *launch;
    const struct instruction *next; /* NULL: it is over */
    char *words;                    /* of the first fault; "" */
};

#define IN(k) (thread->slot[i->at[k]])
#define OUT(value) (thread->slot[i->at[0]] = (uint64_t)(value))

/* The thread ends with a sentence, before which it is said where. */
void thread_fault(struct thread *thread, const struct instruction *i, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A statement of a body: its guard, name and operands.  0: `why` has a sentence. */
int decode(struct kernel *kernel, struct instruction *i, char *statement, char *why);
/* Sets what a load or a store has beside its operands, by its name (ld.global.cs.v4.u32). */
int decode_access(struct instruction *i, const char *name, const char *shape);
/* With the constant in it. */
uint32_t slot_of(struct kernel *kernel, uint64_t constant);

/* Room for one more behind `count`; there is always memory. */
void *one_more(void *array, size_t count, size_t size);

#endif
