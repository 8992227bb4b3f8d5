/* SPDX-License-Identifier: Apache-2.0 */
/* finding.c - the words for levels, which people read and hosts send. */
#include "launcher/doctor/finding.h"

#include <string.h>

const char *const level_words[LEVELS] = { "ok", "warn", "FAIL" };

enum level level_of_word(const char *word)
{
    enum level level = LEVEL_FAIL;

    while (level > LEVEL_OK && strcmp(level_words[level], word) != 0)
        level--;
    return level;
}
