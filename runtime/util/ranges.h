/* SPDX-License-Identifier: Apache-2.0 */
/* ranges.h - writes sets of numbers as ranges, such as "0-2,5". */
#ifndef RUNTIME_UTIL_RANGES_H
#define RUNTIME_UTIL_RANGES_H

#include <stddef.h>

/* Writes the numbers `base + i`, for each i below `count` that is in the set, as ranges such as
 * "0-2,5".  A text that does not fit ends with ",...".  Returns how many numbers are in the set. */
int ranges_print(int base, int count, int (*is_in)(const void *set, int i), const void *set,
                 char *text, size_t size);

/* Writes ranges_print()'s text in words: "0-2,5,7" becomes "0-2, 5 and 7". */
void ranges_as_words(const char *ranges, char *text, size_t size);

#endif
