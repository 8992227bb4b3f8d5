/* SPDX-License-Identifier: Apache-2.0 */
/* moves.c - what moves bits between registers, or the thread to another instruction. */
#include <stddef.h>

#include "tests/ptx/parts.h"

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

/* ---- Moves -------------------------------------------------------------------------- */

static void move(struct thread *thread, const struct instruction *i)
{
    OUT(IN(1));
}

static void choose(struct thread *thread, const struct instruction *i)
{
    OUT(IN(3) ? IN(1) : IN(2));
}

static void join_halves(struct thread *thread, const struct instruction *i)
{
    OUT((uint32_t)(uint16_t)IN(2) << 16 | (uint16_t)IN(1));
}

static void join_words(struct thread *thread, const struct instruction *i)
{
    OUT(IN(2) << 32 | (uint32_t)IN(1));
}

static void part_words(struct thread *thread, const struct instruction *i)
{
    const uint64_t both = IN(2);

    thread->slot[i->at[0]] = (uint32_t)both;
    thread->slot[i->at[1]] = both >> 32;
}

/* Of which type the bits are does not matter. */
#define TYPES(X) \
    X(b16, "h")  \
    X(s16, "h")  \
    X(u16, "h")  \
    X(b32, "w") X(s32, "w") X(u32, "w") X(f32, "w") X(b64, "d") X(s64, "d") X(u64, "d") X(f64, "d")
#define MOVE_ROWS(type, L) { "mov." #type, L L, move }, { "selp." #type, L L L "p", choose },

/* ---- Integers of other widths -------------------------------------------------------- */

/* What is read: the rest of its slot is sign or zero, so any width can be taken of it.  Registers
 * may be wider than it. */
#define SOURCES(X, ...)                \
    X(s8, int8_t, "H", __VA_ARGS__)    \
    X(u8, uint8_t, "H", __VA_ARGS__)   \
    X(s16, int16_t, "H", __VA_ARGS__)  \
    X(u16, uint16_t, "H", __VA_ARGS__) \
    X(s32, int32_t, "W", __VA_ARGS__)  \
    X(u32, uint32_t, "W", __VA_ARGS__) \
    X(s64, int64_t, "d", __VA_ARGS__) X(u64, uint64_t, "d", __VA_ARGS__)
#define DEFINE_FROM(type, T, L, ...)                                            \
    static void from_##type(struct thread *thread, const struct instruction *i) \
    {                                                                           \
        OUT((T)IN(1));                                                          \
    }
SOURCES(DEFINE_FROM, )
#define FROM_ROW(type, T, L, to, TO) { "cvt." to "." #type, TO L, from_##type },

/* ---- To other instructions ------------------------------------------------------------ */

static void jump(struct thread *thread, const struct instruction *i)
{
    thread->next = thread->kernel->code + i->more;
}

static void leave(struct thread *thread, const struct instruction *i)
{
    (void)i;
    thread->next = NULL;
}

/* clang-format off */
static const struct row rows[] = {
    TYPES(MOVE_ROWS)
    SOURCES(FROM_ROW, "s16", "h")
    SOURCES(FROM_ROW, "u16", "h")
    SOURCES(FROM_ROW, "s32", "w")
    SOURCES(FROM_ROW, "u32", "w")
    SOURCES(FROM_ROW, "s64", "d")
    SOURCES(FROM_ROW, "u64", "d")
    { "mov.b64", "dP", move },
    { "mov.u64", "dP", move },
    { "cvta.to.global.u64", "dd", move }, /* memory has one address, whoever asks */
    { "mov.b32", "w{hh}", join_halves },
    { "mov.b64", "d{ww}", join_words },
    { "mov.b64", "{ww}d", part_words },
    { "bra", "L", jump },
    { "bra.uni", "L", jump },
    { "ret", "", leave },
};
/* clang-format on */
const struct rows move_rows = { rows, COUNT(rows) };
