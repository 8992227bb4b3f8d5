/* SPDX-License-Identifier: Apache-2.0 */
/* line_prefix.h - makes the text before a worker's lines. */
#ifndef LAUNCHER_STDIO_LINE_PREFIX_H
#define LAUNCHER_STDIO_LINE_PREFIX_H

#include <stddef.h>

/* The values that templates may name. */
struct prefix_words {
    const char *role, *host;
    int rank, local_rank;
};

/* Gives the template with ${role_name}, ${local_rank}, ${rank} and ${hostname} filled in, for
 * free().  NULL: out of memory. */
char *prefix_expand(const char *template, const struct prefix_words *words);

/* Writes "[3] " or "[0-2,5] " for the workers i whose bit i of set is 1; worker 0 has rank base.
 * coloured: in the colour of a rank. */
void prefix_ranks(const unsigned char *set, int size, int base, int coloured, char *text,
                  size_t bytes);

#endif
