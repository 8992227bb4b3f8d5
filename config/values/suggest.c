/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.c - finds the existing word that is nearest to a misspelt word.  The distance counts
 * letters that are added, left out or changed, and swaps of neighbours (optimal string
 * alignment). */
#include "config/values/suggest.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST = 40 };

static int letter(char c)
{
    return c == '_' ? '-' : tolower((unsigned char)c);
}

static int suggest_least(int a, int b)
{
    return a < b ? a : b;
}

/* Returns the distance between a and b, which have at most LONGEST letters each.  rows[i % 3][j] is
 * the distance between the first i letters of a and the first j letters of b. */
static int distance(const char *a, const char *b)
{
    int rows[3][LONGEST + 1];
    const int length = (int)strlen(b);

    for (int j = 0; j <= length; j++)
        rows[0][j] = j;
    for (int i = 1; a[i - 1]; i++) {
        const int *before = rows[(i + 1) % 3], *last = rows[(i - 1) % 3];
        int *row = rows[i % 3];

        row[0] = i;
        for (int j = 1; j <= length; j++) {
            const int same = letter(a[i - 1]) == letter(b[j - 1]);

            row[j] = suggest_least(last[j - 1] + !same, suggest_least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && letter(a[i - 1]) == letter(b[j - 2])
                && letter(a[i - 2]) == letter(b[j - 1]))
                row[j] = suggest_least(row[j], before[j - 2] + 1);
        }
    }
    return rows[strlen(a) % 3][length];
}

int suggest(struct suggestion *best, const char *typed, const char *word)
{
    const size_t length = strlen(typed);
    const int most = length < 3 ? 0 : length < 6 ? 1 : 2;
    int far;

    if (length > LONGEST || strlen(word) > LONGEST)
        return 0;
    far = distance(typed, word);
    if (far > most || (best->word && far >= best->distance))
        return 0;
    *best = (struct suggestion){ word, far };
    return 1;
}
