/* SPDX-License-Identifier: Apache-2.0 */
/* ranges.h - numbers as people write them: "0-2,5". */
#ifndef RUNTIME_UTIL_RANGES_H
#define RUNTIME_UTIL_RANGES_H

#include <stddef.h>

/* Writes `base + i` for each i below `count` that is in the set.  A text that does not fit ends
 * with ",...".  Returns how many are in the set. */
int ranges_print(int base, int count, int (*is_in)(const void *set, int i), const void *set,
                 char *text, size_t size);

#endif
