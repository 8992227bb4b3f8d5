/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.c - see sizes.h. */
#include "bench/ct_bench/sizes.h"

#include <errno.h>
#include <stdlib.h>

static int shift_of(char unit)
{
    switch (unit) {
    case 'K':
    case 'k':
        return 10;
    case 'M':
    case 'm':
        return 20;
    case 'G':
    case 'g':
        return 30;
    default:
        return 0;
    }
}

/* What follows the size, or NULL. */
static const char *read_one(const char *text, size_t *bytes)
{
    char *end;
    unsigned long long value;
    int shift;

    errno = 0;
    value = strtoull(text, &end, 10);
    shift = shift_of(*end);
    if (*text < '0' || *text > '9' || errno || value == 0 || value > (1ull << 40) >> shift)
        return NULL;
    *bytes = (size_t)(value << shift);
    return shift ? end + 1 : end;
}

static void add(struct sizes *sizes, size_t bytes)
{
    sizes->bytes[sizes->count++] = bytes;
    if (bytes > sizes->largest)
        sizes->largest = bytes;
}

int size_read(const char *text, size_t *bytes)
{
    size_t value;
    const char *end = read_one(text, &value);

    if (!end || *end)
        return -1;
    *bytes = value;
    return 0;
}

const char *sizes_list(struct sizes *sizes, const char *list)
{
    const char *at = list, *end;
    size_t bytes;

    for (*sizes = (struct sizes){ .count = 0 }; sizes->count < MOST_SIZES; at = end + 1) {
        end = read_one(at, &bytes);
        if (!end || (*end && *end != ','))
            return at;
        add(sizes, bytes);
        if (!*end)
            return NULL;
    }
    return at;
}

void sizes_range(struct sizes *sizes, const struct size_range *range)
{
    *sizes = (struct sizes){ .count = 0 };
    for (size_t bytes = range->begin; bytes <= range->end; bytes *= range->factor) {
        add(sizes, bytes);
        if (bytes > range->end / range->factor)
            break;
    }
}
