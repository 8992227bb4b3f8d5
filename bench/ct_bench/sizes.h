/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.h - the sizes of the rows: a list, or from one to another by a factor. */
#ifndef CT_BENCH_SIZES_H
#define CT_BENCH_SIZES_H

#include <stddef.h>

#define MOST_SIZES 64 /* of two to the power of 0 to 40 there are 41 */

struct sizes {
    size_t bytes[MOST_SIZES]; /* in the order of the rows */
    int count;
    size_t largest;
};

struct size_range {
    size_t begin, end, factor;
};

/* "8", "64K", "16M", "1G", up to 1024G.  -1: it is none. */
int size_read(const char *text, size_t *bytes);

/* "8,64K,16M".  NULL, or from where on it is wrong. */
const char *sizes_list(struct sizes *sizes, const char *list);

void sizes_range(struct sizes *sizes, const struct size_range *range);

#endif
