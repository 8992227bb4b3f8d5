/* SPDX-License-Identifier: Apache-2.0 */
/* fold_bits - prints a hash of the bits that each fold and each conversion gives, one per line.
 * scripts/arm compares what it prints on two kinds of processors.  The inputs are all bit patterns
 * of narrow floats, and random bits of the others.  Each NaN counts as the same NaN. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/reduction/combine.h"
#include "runtime/types/dtype.h"
#include "runtime/types/dtype_list.h"

enum { COUNT = 1 << 16, SOURCES = 13, WIDEST = 16 };

static char in[SOURCES][COUNT * WIDEST], out[COUNT * WIDEST];

static uint64_t next_random(void)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Writes a bit pattern of a floating number of so many bytes, of which `mantissa` bits.  Each NaN
 * becomes the one with all bits set. */
static void join_nans(unsigned char *at, size_t bytes, int mantissa, int has_infinity)
{
    const uint64_t all = bytes == 8 ? ~0ull : (1ull << (8 * bytes)) - 1;
    const uint64_t infinity = (all >> 1) & ~((1ull << mantissa) - 1);
    uint64_t bits = 0;

    memcpy(&bits, at, bytes);
    bits &= all >> 1;
    if (has_infinity ? bits > infinity : bits == all >> 1)
        memset(at, 0xff, bytes);
}

static uint64_t hash_of(ct_dtype dtype, size_t count)
{
    static const int mantissas[DTYPE_COUNT] = {
        [CT_F16] = 10, [CT_BF16] = 7,  [CT_F32] = 23,   [CT_F64] = 52,
        [CT_C64] = 23, [CT_C128] = 52, [CT_F8E4M3] = 3, [CT_F8E5M2] = 2
    };
    const size_t parts = dtype == CT_C64 || dtype == CT_C128 ? 2 : 1;
    const size_t bytes = ct_dtype_size(dtype) / parts;
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (size_t i = 0; i < count * parts && mantissas[dtype]; i++)
        join_nans((unsigned char *)out + i * bytes, bytes, mantissas[dtype], dtype != CT_F8E4M3);
    for (size_t i = 0; i < count * parts * bytes; i++)
        hash = (hash ^ (unsigned char)out[i]) * 1099511628211u;
    return hash;
}

/* Source 0 counts up, so that it has each bit pattern of two bytes. */
static void fill(void)
{
    for (int j = 0; j < SOURCES; j++)
        for (size_t i = 0; i < sizeof in[j]; i += 8) {
            const uint64_t bits = next_random();

            memcpy(in[j] + i, &bits, 8);
        }
    for (int i = 0; i < COUNT; i++)
        memcpy(in[0] + 2 * i, &(uint16_t){ (uint16_t)i }, 2);
}

static void print_folds(ct_dtype dtype, ct_op op)
{
    static const int counts[] = { 1, 2, 3, 4, 5, 8, SOURCES };
    const void *sources[SOURCES];
    void *const to = out;

    for (int j = 0; j < SOURCES; j++)
        sources[j] = in[j];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int nodes = 1; nodes <= counts[i]; nodes += counts[i] > 1 ? counts[i] - 1 : 1) {
            const int whole[] = { counts[i] };
            const struct fold fold = { .dtype = dtype,
                                       .op = op,
                                       .sources = counts[i],
                                       .nodes = nodes,
                                       .node_end = nodes == 1 ? whole : NULL };

            combine_fold_to(&fold, &to, 1, sources, COUNT, 0);
            printf("%s %s of %d in %d: %016llx\n", dtype_name(dtype), op_name(op), counts[i], nodes,
                   (unsigned long long)hash_of(dtype, COUNT));
        }
}

int main(void)
{
    fill();
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        for (int op = 0; op < OP_COUNT; op++)
            if (combine_defined((ct_dtype)dtype, (ct_op)op))
                print_folds((ct_dtype)dtype, (ct_op)op);
        if (ct_convert(in[1], CT_F32, out, (ct_dtype)dtype, COUNT) == CT_OK)
            printf("f32 to %s: %016llx\n", dtype_name((ct_dtype)dtype),
                   (unsigned long long)hash_of((ct_dtype)dtype, COUNT));
        if (ct_convert(in[0], (ct_dtype)dtype, out, CT_F32, COUNT) == CT_OK)
            printf("%s to f32: %016llx\n", dtype_name((ct_dtype)dtype),
                   (unsigned long long)hash_of(CT_F32, COUNT));
    }
    return 0;
}
