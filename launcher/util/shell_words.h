/* SPDX-License-Identifier: Apache-2.0 */
/* shell_words.h - words as a POSIX shell reads and writes them, without expansion. */
#ifndef LAUNCHER_UTIL_SHELL_WORDS_H
#define LAUNCHER_UTIL_SHELL_WORDS_H

#include <stdio.h>

/* Splits text at blanks outside of '...', "..." and after a backslash.  The words are in one block
 * for free(), and end with NULL.  NULL: out of memory (*open is 0), or a quote is not closed (*open
 * is that quote). */
char **shell_split(const char *text, char *open);

/* Writes one word, with quotes if a shell would not read it as the same word. */
void shell_quote(FILE *out, const char *word);

/* Writes a command of these words, with blanks between them. */
void shell_print(FILE *out, char *const *words);

#endif
