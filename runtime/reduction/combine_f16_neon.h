/* SPDX-License-Identifier: Apache-2.0 */
/* combine_f16_neon.h - defines the loops for f16 with the conversions of aarch64, in blocks of 8.
 *
 * This is a part of combine_loops.h.  gcc 12 converts one f16 at a time, which takes 15
 * instructions for an element of a sum instead of 2.  It vectorizes the loops of the other narrow
 * floats, which have only operations on integers. */
#ifndef RUNTIME_REDUCTION_COMBINE_F16_NEON_H
#define RUNTIME_REDUCTION_COMBINE_F16_NEON_H

#include <arm_neon.h>

enum { BLOCK = 8 };

typedef float32x4_t vector;
typedef float16x8_t F16_block;

struct pair {
    float32x4_t low, high;
};

static inline struct pair F16_from_block(float16x8_t h)
{
    const struct pair pair = { vcvt_f32_f16(vget_low_f16(h)), vcvt_high_f32_f16(h) };

    return pair;
}

static inline float16x8_t F16_to_block(struct pair a)
{
    return vcvt_high_f16_f32(vcvt_f16_f32(a.low), a.high);
}

static inline float32x4_t chosen(float32x4_t condition, float32x4_t yes, float32x4_t no)
{
    return vbslq_f32(vreinterpretq_u32_f32(condition), yes, no);
}

#define F16_widened F16_from_block
#define F16_narrowed F16_to_block

#include "runtime/reduction/combine_blocks.h"

#define DEFINE_NARROW(NAME, ...) DEFINE_NARROW_##NAME(NAME, __VA_ARGS__)
#define DEFINE_NARROW_F16 DEFINE_NARROW_BLOCKS
#define DEFINE_NARROW_BF16 DEFINE_NARROW_ELEMENTS
#define DEFINE_NARROW_F8E4M3 DEFINE_NARROW_ELEMENTS
#define DEFINE_NARROW_F8E5M2 DEFINE_NARROW_ELEMENTS

#endif
