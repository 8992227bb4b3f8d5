/* SPDX-License-Identifier: Apache-2.0 */
/* line_filter.h - the words of --duplicate-stdout-filters. */
#ifndef LAUNCHER_STDIO_LINE_FILTER_H
#define LAUNCHER_STDIO_LINE_FILTER_H

#include <stddef.h>

/* Has the line one of the words of list in it?  They are separated by commas, two
 * commas stand for one in a word, and the empty word is in every line. */
int filters_match(const char *list, const char *line, size_t size);

#endif
