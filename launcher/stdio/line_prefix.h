/* SPDX-License-Identifier: Apache-2.0 */
/* line_prefix.h - makes the prefix of a worker's lines. */
#ifndef LAUNCHER_STDIO_LINE_PREFIX_H
#define LAUNCHER_STDIO_LINE_PREFIX_H

#include <stddef.h>

/* The values that a template can contain. */
struct prefix_words {
    const char *role, *host;
    int rank, local_rank;
};

/* Returns the template with ${role_name}, ${local_rank}, ${rank} and ${hostname} replaced by their
 * values.  The caller frees the text.  Returns NULL if memory runs out. */
char *prefix_expand(const char *template, const struct prefix_words *words);

/* Writes the ranks of workers, such as "[3] " or "[0-2,5] ".  Worker i is listed if bit i of `set`
 * is 1, and worker 0 has the rank `base`.  If `coloured` is 1, the text has the colour of the
 * rank. */
void prefix_ranks(const unsigned char *set, int size, int base, int coloured, char *text,
                  size_t bytes);

#endif
