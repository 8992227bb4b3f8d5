/* SPDX-License-Identifier: Apache-2.0 */
/* flight.c - one case on one rank.
 *
 * The test fills the memory of a side with a pattern, then with what the rank sends.  After the
 * call it builds an image of the memory from the same pattern, what was sent and what must have
 * been received; memory and image may differ in the bits of NaN only.  So it finds whatever was
 * written where nothing belongs, in gaps and behind ends too. */
#include "tests/collectives/flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/reference.h"
#include "tests/elements.h"

enum { PATTERN = 0x5a };

static void *memory(size_t bytes)
{
    void *at = malloc(bytes ? bytes : 1);

    if (!at)
        abort();
    return at;
}

/* Whether rank me has that side of a case where the others can reach it. */
static int is_shared(const struct pick *c, int me, int side)
{
    return c->reach == 1 || (c->reach && mix(c->seed, 5001 + (uint64_t)(2 * me + side)) % 3 > 0);
}

static char *side_memory(const struct flight *f, int me, int side, size_t bytes)
{
    if (bytes <= SHARED_BYTES && is_shared(&f->pick, me, side))
        return f->pool + (size_t)side * SHARED_BYTES;
    return memory(bytes);
}

static void free_side(const struct flight *f, char *memory)
{
    if (memory < f->pool || memory >= f->pool + 2 * SHARED_BYTES)
        free(memory);
}

/* ---- Elsewhere ------------------------------------------------------------------- */

/* Ranks that are threads all say the same. */
static const struct elsewhere *_Atomic device;

void flight_use(const struct elsewhere *elsewhere)
{
    device = elsewhere;
}

static char *put(const char *here, size_t bytes)
{
    char *const there = device->take(bytes ? bytes : 1);

    device->put(there, here, bytes);
    return there;
}

/* All ranks or none, as a call must have it. */
static void put_elsewhere(struct flight *f)
{
    f->given_send = f->send;
    f->given_recv = f->recv;
    if (!device || mix(f->pick.seed, 7001) % 4 == 0)
        return;
    f->given_send = put(f->send, f->send_side.bytes);
    f->given_recv = f->recv == f->send ? f->given_send : put(f->recv, f->recv_side.bytes);
}

void flight_fetch(struct flight *f)
{
    if (f->given_send == f->send)
        return;
    device->get(f->send, f->given_send, f->send_side.bytes);
    if (f->recv != f->send)
        device->get(f->recv, f->given_recv, f->recv_side.bytes);
}

static void give_back(const struct flight *f)
{
    if (f->given_send == f->send)
        return;
    device->give_back(f->given_send);
    if (f->recv != f->send)
        device->give_back(f->given_recv);
}

/* ---- Before ---------------------------------------------------------------------- */

/* Both sides in the memory of the larger one, where the call knows a way to have them there. */
static int put_in_place(struct flight *f)
{
    const int me = ct_rank(f->group);

    if (!f->pick.in_place || !f->send_side.blocks || !f->recv_side.blocks)
        return 0;
    switch (f->pick.kind) {
    case REDUCE:
    case ALL_REDUCE:
    case ALL_TO_ALL:
        f->send_side = f->recv_side;
        return 1;
    case GATHER:
    case ALL_GATHER:
        f->send_side.at[0] = f->recv_side.at[me];
        f->send_side.start = f->send_side.at[0];
        f->send_side.bytes = f->recv_side.bytes;
        return 1;
    case SCATTER:
    case REDUCE_SCATTER:
        f->recv_side.at[0] = f->send_side.at[me];
        f->recv_side.start = f->recv_side.at[0];
        f->recv_side.bytes = f->send_side.bytes;
        return 1;
    default:
        return 0;
    }
}

static void give(const struct flight *f, const struct side *side, int from, char *at)
{
    for (int i = 0; i < side->blocks; i++)
        case_fill(&f->pick, from, i, at + side->at[i], side->count[i]);
}

void flight_prepare(struct flight *f, const struct pick *pick, ct_group *group, const int *host,
                    char *pool)
{
    const int p = ct_size(group), me = ct_rank(group);
    int in_place;

    *f = (struct flight){ .pick = *pick, .group = group, .host = host, .row = "", .pool = pool };
    f->send_side = case_send(pick, p, me);
    f->recv_side = case_recv(pick, p, me);
    in_place = put_in_place(f);
    f->send = side_memory(f, me, 0, f->send_side.bytes);
    memset(f->send, PATTERN, f->send_side.bytes);
    give(f, &f->send_side, me, f->send);
    f->given = memory(f->send_side.bytes);
    memcpy(f->given, f->send, f->send_side.bytes);
    f->recv = in_place ? f->send : side_memory(f, me, 1, f->recv_side.bytes);
    if (!in_place)
        memset(f->recv, PATTERN, f->recv_side.bytes);
    if (pick->kind == BROADCAST && me == case_root(pick, p))
        case_fill(pick, me, 0, f->recv + f->recv_side.at[0], pick->count);
    put_elsewhere(f);
}

/* ---- After ------------------------------------------------------------------------------ */

static void fold(const struct flight *f, int block, char *to, size_t count)
{
    const struct pick *c = &f->pick;
    const size_t bytes = count * ct_dtype_size(c->dtype);
    const int p = ct_size(f->group);
    char *const inputs = memory(bytes * (size_t)p);
    const void *sources[MAX_RANKS];
    _Alignas(16) char scalar[16];

    for (int r = 0; r < p; r++) {
        char *const input = inputs + bytes * (size_t)r;

        sources[r] = input;
        case_fill(c, r, block, input, count);
        if (c->op == PREMUL_SUM) {
            case_scalar(c, r, scalar);
            reference_scale(c->dtype, input, count, scalar);
        }
    }
    reference_reduce(c->dtype, c->op == PREMUL_SUM ? CT_SUM : c->op, to, sources, f->host, p,
                     count);
    free(inputs);
}

/* What must lie in block i of the recv side. */
static void wanted(const struct flight *f, int i, char *to)
{
    const struct pick *c = &f->pick;
    const int p = ct_size(f->group), me = ct_rank(f->group), root = case_root(c, p);
    const size_t count = f->recv_side.count[i];

    switch (c->kind) {
    case REDUCE:
    case ALL_REDUCE:
        fold(f, 0, to, count);
        break;
    case REDUCE_SCATTER:
        fold(f, me, to, count);
        break;
    case BROADCAST:
        case_fill(c, root, 0, to, count);
        break;
    case SCATTER:
        case_fill(c, root, me, to, count);
        break;
    case ALL_TO_ALL:
        case_fill(c, i, me, to, count);
        break;
    case SHIFT:
        case_fill(c, (me + p - root) % p, 0, to, count);
        break;
    case MANY_TO_ONE:
        case_fill(c, f->from[i], 0, to, count);
        break;
    default:
        case_fill(c, i, 0, to, count);
    }
}

/* Whether the order decides the number, which then is only known to be the same on all ranks. */
static int is_open(const struct pick *c)
{
    return c->fast && !c->exact && has_op(c->kind) && !is_integer(c->dtype) && c->dtype != CT_BOOL
           && c->op != CT_MIN && c->op != CT_MAX;
}

/* Takes over into the image what is right in the memory: NaN of whatever bits.  -1: all is. */
static ptrdiff_t first_wrong(const struct flight *f, int block, char *image)
{
    const size_t element = ct_dtype_size(f->pick.dtype), start = f->recv_side.at[block];
    const size_t bytes = f->recv_side.count[block] * element;

    if (memcmp(image + start, f->recv + start, bytes) == 0)
        return -1;
    for (size_t at = start; at < start + bytes && !is_open(&f->pick); at += element)
        if (!(f->pick.fast ? reference_same_number : reference_equal)(f->pick.dtype, image + at,
                                                                      f->recv + at))
            return (ptrdiff_t)((at - start) / element);
    memcpy(image + start, f->recv + start, bytes);
    return -1;
}

static size_t first_difference(const char *a, const char *b, size_t bytes)
{
    size_t at = memcmp(a, b, bytes) == 0 ? bytes : 0;

    while (at < bytes && a[at] == b[at])
        at++;
    return at;
}

static void say_element(const struct flight *f, const char *image, int block, ptrdiff_t i,
                        char *wrong, size_t size)
{
    const size_t element = ct_dtype_size(f->pick.dtype);
    const size_t at = f->recv_side.at[block] + (size_t)i * element;
    int n = snprintf(wrong, size, "wrong value: element %td of block %d is", i, block);

    for (size_t b = element; b-- > 0;)
        n += snprintf(wrong + n, size - (size_t)n, "%s%02x", b == element - 1 ? " 0x" : "",
                      (unsigned char)f->recv[at + b]);
    for (size_t b = element; b-- > 0;)
        n += snprintf(wrong + n, size - (size_t)n, "%s%02x", b == element - 1 ? ", not 0x" : "",
                      (unsigned char)image[at + b]);
}

/* Each of the others once. */
static int senders_are_right(const struct flight *f)
{
    unsigned seen = 1u << ct_rank(f->group);

    for (int i = 0; i < f->recv_side.blocks; i++) {
        if (f->from[i] < 0 || f->from[i] >= ct_size(f->group) || seen >> f->from[i] & 1)
            return 0;
        seen |= 1u << f->from[i];
    }
    return 1;
}

static int check_memory(const struct flight *f, char *image, char *wrong, size_t size)
{
    const size_t bytes = f->recv_side.bytes;
    size_t at;

    for (int i = 0; i < f->recv_side.blocks; i++)
        wanted(f, i, image + f->recv_side.at[i]);
    for (int i = 0; i < f->recv_side.blocks; i++) {
        const ptrdiff_t element = first_wrong(f, i, image);

        if (element >= 0) {
            say_element(f, image, i, element, wrong, size);
            return 0;
        }
    }
    at = first_difference(image, f->recv, bytes);
    if (at < bytes)
        snprintf(wrong, size, "byte %zu of %zu, where nothing is received, was written", at, bytes);
    return at == bytes;
}

int flight_check(const struct flight *f, char *wrong, size_t size)
{
    const int in_place = f->send == f->recv;
    char *image;
    int right;

    if (f->pick.kind == MANY_TO_ONE && !senders_are_right(f)) {
        snprintf(wrong, size, "a sender came twice, or is none");
        return 0;
    }
    if (!in_place && memcmp(f->send, f->given, f->send_side.bytes) != 0) {
        snprintf(wrong, size, "byte %zu of what is sent was changed",
                 first_difference(f->send, f->given, f->send_side.bytes));
        return 0;
    }
    image = memory(f->recv_side.bytes);
    memset(image, PATTERN, f->recv_side.bytes);
    if (in_place)
        memcpy(image, f->given, f->recv_side.bytes);
    right = check_memory(f, image, wrong, size);
    free(image);
    return right;
}

uint64_t flight_digest(const struct flight *f)
{
    const ct_dtype dtype = f->pick.dtype;
    uint64_t digest = 1;

    for (int i = 0; i < f->recv_side.blocks; i++) {
        const size_t count = f->recv_side.count[i], bytes = count * ct_dtype_size(dtype);
        unsigned char *const block = memory(bytes);

        memcpy(block, f->recv + f->recv_side.at[i], bytes);
        reference_unify_nan(dtype, block, count);
        for (size_t at = 0; at < bytes; at++)
            digest = (digest ^ block[at]) * 0x100000001b3u; /* as FNV has it */
        free(block);
    }
    return digest ? digest : 1;
}

void flight_free(struct flight *f)
{
    if (f->premul)
        ct_op_free(f->premul);
    give_back(f);
    if (f->recv != f->send)
        free_side(f, f->recv);
    free_side(f, f->send);
    free(f->given);
    *f = (struct flight){ .count = 0 };
}
