/* SPDX-License-Identifier: Apache-2.0 */
/* input.h - what the fuzzers have in common: what must hold, and taking an input apart. */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline void holds(int it)
{
    if (!it)
        abort();
}

/* What is left of an input. */
struct fuzz_input {
    const uint8_t *data;
    size_t left;
};

/* The next byte; 0 behind the last one. */
static inline unsigned take(struct fuzz_input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->data++;
}

#endif
