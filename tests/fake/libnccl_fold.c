/* SPDX-License-Identifier: Apache-2.0 */
/* libnccl_fold.c - the fake NCCL's arithmetic: each step is rounded to the type. */
#include "tests/fake/libnccl.h"

#include "runtime/types/narrow_float.h"

#define SAME(x) (x)

/* type, stored as, computed as, to that, from it */
#define FOLDED(X)                                              \
    X(ncclInt8, int8_t, uint8_t, SAME, SAME)                   \
    X(ncclUint8, uint8_t, uint8_t, SAME, SAME)                 \
    X(ncclInt32, int32_t, uint32_t, SAME, SAME)                \
    X(ncclUint32, uint32_t, uint32_t, SAME, SAME)              \
    X(ncclInt64, int64_t, uint64_t, SAME, SAME)                \
    X(ncclUint64, uint64_t, uint64_t, SAME, SAME)              \
    X(ncclFloat16, uint16_t, float, f16_to_f32, f32_to_f16)    \
    X(ncclBfloat16, uint16_t, float, bf16_to_f32, f32_to_bf16) \
    X(ncclFloat32, float, float, SAME, SAME)                   \
    X(ncclFloat64, double, double, SAME, SAME)

size_t fake_size_of(ncclDataType_t type)
{
    switch ((int)type) {
#define SIZE(name, T, ...) \
    case name:             \
        return sizeof(T);
        FOLDED(SIZE)
#undef SIZE
    default:
        return 0;
    }
}

int fake_can_fold(ncclDataType_t type, ncclRedOp_t op)
{
    return fake_size_of(type) > 0 && op >= ncclSum && op <= ncclAvg;
}

/* MIN and MAX compare what is stored, which has the sign; those of halves are not needed. */
#define FOLD(name, T, A, to_a, from_a)                                          \
    static void fold_##name(ncclRedOp_t op, T *to, const T *from, size_t count) \
    {                                                                           \
        for (size_t i = 0; i < count; i++) {                                    \
            const A a = (A)to_a(to[i]), b = (A)to_a(from[i]);                   \
                                                                                \
            to[i] = op == ncclMin    ? (to[i] < from[i] ? to[i] : from[i])      \
                    : op == ncclMax  ? (to[i] > from[i] ? to[i] : from[i])      \
                    : op == ncclProd ? (T)from_a((A)(a * b))                    \
                                     : (T)from_a((A)(a + b));                   \
        }                                                                       \
    }                                                                           \
    static void prepare_##name(T *values, size_t count, int ranks)              \
    {                                                                           \
        const A part = (A)(1.0 / ranks);                                        \
                                                                                \
        for (size_t i = 0; i < count; i++)                                      \
            values[i] = (T)from_a((A)((A)to_a(values[i]) * part));              \
    }
FOLDED(FOLD)
#undef FOLD

void fake_fold(ncclDataType_t type, ncclRedOp_t op, void *to, const void *from, size_t count)
{
    switch ((int)type) {
#define CASE(name, ...)                   \
    case name:                            \
        fold_##name(op, to, from, count); \
        return;
        FOLDED(CASE)
#undef CASE
    }
}

void fake_prepare(ncclDataType_t type, ncclRedOp_t op, void *values, size_t count, int ranks)
{
    if (op != ncclAvg)
        return;
    switch ((int)type) {
#define CASE(name, ...)                       \
    case name:                                \
        prepare_##name(values, count, ranks); \
        return;
        FOLDED(CASE)
#undef CASE
    }
}
