/* SPDX-License-Identifier: Apache-2.0 */
/* by_hand.h - what this machine's widest vectors reach. */
#ifndef BENCH_COMBINE_BENCH_BY_HAND_H
#define BENCH_COMBINE_BENCH_BY_HAND_H

#include <stddef.h>

/* c = a + b in f32, unrolled; bytes: of one of them, a multiple of 256. */
void by_hand_add(void *c, const void *a, const void *b, size_t bytes);
/* Reads all of it. */
void by_hand_read(const void *from, size_t bytes);

#endif
