/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/util/ranges.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 32 /* bytes for the longest range, ",-2147483648--2147483648", and ",..." */

int ranges_print(int base, int count, int (*is_in)(const void *set, int i), const void *set,
                 char *text, size_t size)
{
    size_t used = 0;
    int found = 0, is_cut = 0;

    *text = '\0';
    for (int i = 0; i < count; i++) {
        const int first = i;

        if (!is_in(set, i))
            continue;
        while (i + 1 < count && is_in(set, i + 1))
            i++;
        found += i + 1 - first;
        if (is_cut)
            continue;
        is_cut = used + LONGEST > size;
        if (is_cut)
            snprintf(text + used, size - used, ",...");
        else
            used += (size_t)snprintf(text + used, size - used, i > first ? "%s%d-%d" : "%s%d",
                                     used ? "," : "", base + first, base + i);
    }
    return found;
}

void ranges_as_words(const char *ranges, char *text, size_t size)
{
    const char *const last = strrchr(ranges, ',');
    size_t used = 0;

    *text = '\0';
    for (const char *c = ranges; *c && used + 6 < size; c++)
        used += (size_t)snprintf(text + used, size - used, "%s%.1s",
                                 c == last   ? " and "
                                 : *c == ',' ? ", "
                                             : "",
                                 *c == ',' ? "" : c);
}
