/* SPDX-License-Identifier: Apache-2.0 */
/* cases.c - drawing calls, and what follows from their seeds. */
#include "tests/collectives/cases.h"

#include <stdio.h>
#include <string.h>

#include "runtime/types/call_signature.h"
#include "runtime/types/dtype.h"
#include "tests/collectives/reference.h"
#include "tests/elements.h"

enum { GUARD = 48 }; /* bytes before, between and behind blocks that must not change */

/* What the library knows of a kind, by form; plain and list are one operation. */
static const struct {
    const char *name;
    int operation, v_operation; /* -1: none */
    int op, root, list;
} kinds[KINDS] = {
    [BROADCAST] = { "broadcast", OPERATION_BROADCAST, -1, 0, 1, 0 },
    [REDUCE] = { "reduce", OPERATION_REDUCE, -1, 1, 1, 0 },
    [ALL_REDUCE] = { "all_reduce", OPERATION_ALL_REDUCE, -1, 1, 0, 0 },
    [REDUCE_SCATTER] = { "reduce_scatter", OPERATION_REDUCE_SCATTER, OPERATION_REDUCE_SCATTER_V, 1,
                         0, 1 },
    [GATHER] = { "gather", OPERATION_GATHER, OPERATION_GATHER_V, 0, 1, 1 },
    [ALL_GATHER] = { "all_gather", OPERATION_ALL_GATHER, OPERATION_ALL_GATHER_V, 0, 0, 1 },
    [SCATTER] = { "scatter", OPERATION_SCATTER, OPERATION_SCATTER_V, 0, 1, 1 },
    [ALL_TO_ALL] = { "all_to_all", OPERATION_ALL_TO_ALL, OPERATION_ALL_TO_ALL_V, 0, 0, 1 },
    [BARRIER] = { "barrier", OPERATION_BARRIER, -1, 0, 0, 0 },
    [SHIFT] = { "messages to the right", -1, -1, 0, 0, 0 },
    [MANY_TO_ONE] = { "messages from any source", -1, -1, 0, 1, 0 },
};

uint64_t mix(uint64_t a, uint64_t b) /* splitmix64's end, over both */
{
    uint64_t x = a + (b + 1) * 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return x ? x : 1;
}

uint64_t next_of(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

int has_op(enum kind kind)
{
    return kinds[kind].op;
}

int has_root(enum kind kind)
{
    return kinds[kind].root;
}

int has_form(enum kind kind, enum form form)
{
    return form == V ? kinds[kind].v_operation >= 0 : form == LIST ? kinds[kind].list : 1;
}

int case_operation(const struct pick *c)
{
    return c->form == V ? kinds[c->kind].v_operation : kinds[c->kind].operation;
}

int case_root(const struct pick *c, int p)
{
    return c->root % p;
}

/* ---- Drawing ----------------------------------------------------------------------- */

/* Half are small.  The others lie around what the library does differently from: bytes of a block
 * or, divided by the ranks, of all; one element less, exactly, one more. */
static size_t draw_count(uint64_t *seed, size_t element, int p)
{
    static const size_t limits[] = {
        64,  64,   64,   256,   4096,  8192,  8192, /* rows of docs/algorithms.md */
        512, 1024, 2048, 16384, 32768, 65536, 131072, 262144, 262144, 1u << 20 /* pieces */
    };
    enum { LIMITS = sizeof limits / sizeof *limits };
    const unsigned dice = next_of(seed) % 1024;
    size_t bytes = limits[next_of(seed) % LIMITS], count;

    if (dice < 400)
        return next_of(seed) % 40;
    if (dice < 460)
        return next_of(seed) % 3000;
    if (dice == 1023) /* all_reduce's pieces over TCP; for one kind or dtype in some */
        bytes = (size_t)8 << 20;
    else if (bytes > 65536 && dice % 4) /* they take their time */
        bytes = 64;
    if (bytes > 65536 && p > 3 && bytes > ((size_t)4 << 20) / (size_t)p)
        bytes = 262144;
    if (dice % 3 == 0)
        bytes = bytes / (size_t)p / 64 * 64; /* a slot's share, or all inputs in a line */
    count = bytes / element;
    return count + next_of(seed) % 3 - (count > 0);
}

static void draw_op(struct pick *c, uint64_t *seed)
{
    do {
        c->dtype = (ct_dtype)(next_of(seed) % DTYPES);
        c->op = (ct_op)(next_of(seed) % (PREMUL_SUM + 1));
    } while (c->op == PREMUL_SUM ? is_integer(c->dtype) || c->dtype == CT_BOOL
                                 : !op_has_meaning(c->dtype, c->op));
}

struct pick draw_case(uint64_t seed, int number, int p)
{
    struct pick c = { .seed = seed, .number = number };
    uint64_t s = mix(seed, 0);

    c.kind = (enum kind)(next_of(&s) % (KINDS + 3)); /* reductions twice as often */
    if (c.kind >= KINDS)
        c.kind = REDUCE + (c.kind - KINDS);
    do
        c.form = (enum form)(next_of(&s) % 3);
    while (!has_form(c.kind, c.form));
    draw_op(&c, &s);
    c.group = next_of(&s) % 2 ? 0 : 1 + (int)(next_of(&s) % 2);
    c.row = (unsigned)(next_of(&s) % 8);
    c.root = (int)(next_of(&s) % 5040);
    c.in_place = next_of(&s) % 3 == 0;
    c.asynchronous = next_of(&s) % 2 == 0;
    c.wild = next_of(&s) % 4 == 0;
    c.count = draw_count(&s, ct_dtype_size(c.dtype), p);
    if (c.count * ct_dtype_size(c.dtype) > (size_t)2 << 20 && (c.kind != ALL_REDUCE || p > 3))
        c.count = 3;
    c.reach = (int)(next_of(&s) % 8) / 2; /* none in half of the cases */
    c.reach = c.reach < 2 ? 0 : c.reach - 1;
    c.rough = next_of(&s) % 2 == 0;
    return c;
}

/* ---- What follows -------------------------------------------------------------------- */

size_t case_count(const struct pick *c, int from, int to)
{
    const size_t uneven[] = { c->count, c->count + 1, 0, c->count / 2, c->count };
    int who;

    if (c->form != V)
        return c->count;
    switch (c->kind) {
    case GATHER:
    case ALL_GATHER:
        who = from;
        break;
    case SCATTER:
    case REDUCE_SCATTER:
        who = to;
        break;
    default: /* in place, block i is sent to and received from rank i */
        who = c->in_place ? from * to + 7 * (from + to) : from * MAX_RANKS + to;
    }
    return uneven[mix(c->seed, 1000 + (uint64_t)who) % 5];
}

/* Places for side->blocks blocks, whose counts are there. */
static void lay_out(struct side *side, const struct pick *c, int me, int sends, int displaced)
{
    const size_t element = ct_dtype_size(c->dtype);
    const int side_number = 2 * me + (sends && !c->in_place); /* in place both lie alike */
    uint64_t seed = mix(c->seed, 2000 + (uint64_t)side_number);
    size_t elements = 0, end;
    const int shift = side->blocks ? (int)(next_of(&seed) % (unsigned)side->blocks) : 0;

    side->start = GUARD + (next_of(&seed) % 3 == 0 ? next_of(&seed) % 16 : 0);
    end = side->start;
    for (int n = 0; n < side->blocks; n++) {
        const int i = displaced ? (n + shift) % side->blocks : n;

        if (displaced)
            elements += next_of(&seed) % 4;
        if (c->form == LIST)
            end += GUARD + next_of(&seed) % 16;
        side->displs[i] = elements;
        side->at[i] = c->form == LIST ? end : side->start + elements * element;
        elements += side->count[i];
        end = side->at[i] + side->count[i] * element;
    }
    side->bytes = end + GUARD;
}

/* Whether the caller gives displacements. */
static int is_displaced(const struct pick *c, int sends)
{
    const int can = sends ? c->kind == SCATTER || c->kind == ALL_TO_ALL
                          : c->kind == GATHER || c->kind == ALL_GATHER || c->kind == ALL_TO_ALL;

    return can && c->form == V && c->seed % 3 != 0;
}

struct side case_send(const struct pick *c, int p, int me)
{
    struct side side = { .blocks = 1 };
    const int root = case_root(c, p);

    switch (c->kind) {
    case BROADCAST:
    case BARRIER:
        side.blocks = 0;
        break;
    case SCATTER:
        side.blocks = me == root ? p : 0;
        break;
    case REDUCE_SCATTER:
    case ALL_TO_ALL:
        side.blocks = p;
        break;
    case MANY_TO_ONE:
        side.blocks = me != root;
        break;
    default:
        break;
    }
    for (int i = 0; i < side.blocks; i++)
        side.count[i] = case_count(c, me, i);
    lay_out(&side, c, me, 1, is_displaced(c, 1));
    return side;
}

struct side case_recv(const struct pick *c, int p, int me)
{
    struct side side = { .blocks = 1 };
    const int root = case_root(c, p);

    switch (c->kind) {
    case BARRIER:
        side.blocks = 0;
        break;
    case REDUCE:
        side.blocks = me == root;
        break;
    case GATHER:
        side.blocks = me == root ? p : 0;
        break;
    case MANY_TO_ONE:
        side.blocks = me == root ? p - 1 : 0;
        break;
    case ALL_GATHER:
    case ALL_TO_ALL:
        side.blocks = p;
        break;
    default:
        break;
    }
    for (int i = 0; i < side.blocks; i++)
        side.count[i] = case_count(c, i, me);
    lay_out(&side, c, me, 0, is_displaced(c, 0));
    return side;
}

static void fill_words(uint64_t seed, char *at, size_t bytes)
{
    const size_t most = bytes / sizeof seed * sizeof seed;

    for (size_t i = 0; i < most; i += sizeof seed) {
        next_of(&seed);
        memcpy(at + i, &seed, sizeof seed);
    }
    next_of(&seed);
    memcpy(at + most, &seed, bytes - most);
}

/* -1, 0 or 1 by what is drawn: nine of them have an exact sum in every dtype but f8e5m2, which has
 * no 9. */
static unsigned exact_value(const struct pick *c, int from, uint64_t bits)
{
    const unsigned zero = REFERENCE_VALUES / 2, one = 64;

    if (c->dtype == CT_F8E5M2 && from > 7)
        return zero;
    return zero - one + (unsigned)(bits % 3) * one;
}

static void fill_exact(const struct pick *c, int from, uint64_t seed, void *at, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = next_of(&seed);

        reference_put(c->dtype, at, i, exact_value(c, from, bits),
                      exact_value(c, from, bits >> 32));
    }
}

/* Parts of 0.5 to 8. */
static void fill_rough(const struct pick *c, uint64_t seed, char *at, size_t bytes)
{
    const int is_double = c->dtype == CT_F64 || c->dtype == CT_C128;
    const size_t part = is_double ? sizeof(uint64_t) : sizeof(uint32_t);

    for (size_t i = 0; i < bytes; i += part) {
        const uint64_t bits = next_of(&seed);
        const uint32_t single = ((uint32_t)bits & 0x807fffffu) | (126u + (bits >> 23 & 3)) << 23;
        const uint64_t whole =
            (bits & 0x800fffffffffffffu) | (uint64_t)(1022u + (bits >> 52 & 3)) << 52;

        memcpy(at + i, is_double ? (const void *)&whole : &single, part);
    }
}

static int has_long_mantissa(ct_dtype dtype)
{
    return dtype == CT_F32 || dtype == CT_F64 || is_complex(dtype);
}

/* Of BOOL some are no 0 and no 1, which both count as true. */
void case_fill(const struct pick *c, int from, int to, void *at, size_t count)
{
    const size_t bytes = count * ct_dtype_size(c->dtype);
    uint64_t seed = mix(c->seed, 3000 + (uint64_t)(from * MAX_RANKS + to)), bits;

    if (c->dtype == CT_BOOL)
        for (size_t i = 0; i < count; i++) {
            bits = next_of(&seed);
            ((unsigned char *)at)[i] = bits % 3 == 0 ? 0 : (unsigned char)(bits >> 8);
        }
    else if (!is_integer(c->dtype) && c->exact)
        fill_exact(c, from, seed, at, count);
    else if (is_integer(c->dtype) || c->wild)
        fill_words(seed, at, bytes);
    else if (c->rough && has_long_mantissa(c->dtype))
        fill_rough(c, seed, at, bytes);
    else
        for (size_t i = 0; i < count; i++) {
            bits = next_of(&seed);
            reference_put(c->dtype, at, i, (unsigned)(bits % REFERENCE_VALUES),
                          (unsigned)((bits >> 32) % REFERENCE_VALUES));
        }
}

void case_scalar(const struct pick *c, int rank, void *scalar)
{
    const uint64_t bits = mix(c->seed, 4000 + (uint64_t)rank);

    if (c->exact) {
        const unsigned one = REFERENCE_VALUES / 2 + 64, zero = REFERENCE_VALUES / 2;

        reference_put(c->dtype, scalar, 0, bits % 2 ? one : zero - 64, zero);
        return;
    }
    reference_put(c->dtype, scalar, 0, (unsigned)(bits % REFERENCE_VALUES),
                  (unsigned)((bits >> 32) % REFERENCE_VALUES));
}

void case_describe(const struct pick *c, int p, char *text, size_t size)
{
    static const char *const forms[] = { "", "_v", "_list" };
    char root[24] = "";

    if (has_root(c->kind))
        snprintf(root, sizeof root, ", root %d", case_root(c, p));
    snprintf(text, size, "%s%s of %zu %s%s%s%s on %d ranks, %s, %s", kinds[c->kind].name,
             forms[c->form], c->count, dtype_name(c->dtype), has_op(c->kind) ? " " : "",
             !has_op(c->kind)      ? ""
             : c->op == PREMUL_SUM ? "premul_sum"
                                   : op_name(c->op),
             root, p, c->in_place ? "in place" : "two buffers",
             c->asynchronous ? "asynchronous" : "blocking");
}
