/* SPDX-License-Identifier: Apache-2.0 */
/* filters.h - the words of --duplicate-stdout-filters. */
#ifndef LAUNCHER_FILTERS_H
#define LAUNCHER_FILTERS_H

#include <stddef.h>

/* Has the line one of the words of list in it?  They are separated by commas, two
 * commas stand for one in a word, and the empty word is in every line. */
int filters_match(const char *list, const char *line, size_t size);

#endif
