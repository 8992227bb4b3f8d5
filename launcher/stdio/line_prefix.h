/* SPDX-License-Identifier: Apache-2.0 */
/* line_prefix.h - what stands before a worker's lines. */
#ifndef LAUNCHER_STDIO_LINE_PREFIX_H
#define LAUNCHER_STDIO_LINE_PREFIX_H

#include <stddef.h>

/* What templates may name. */
struct prefix_words {
    const char *role, *host;
    int rank, local_rank;
};

/* template with ${role_name}, ${local_rank}, ${rank} and ${hostname} filled in, or NULL
 * (out of memory); free() it. */
char *prefix_expand(const char *template, const struct prefix_words *words);

/* "[3] ", "[0-2,5] ": of the workers i for which bit i of set is 1, the first of
 * which is rank base.  In the colour of a rank if coloured. */
void prefix_ranks(const unsigned char *set, int size, int base, int coloured, char *text,
                  size_t bytes);

#endif
