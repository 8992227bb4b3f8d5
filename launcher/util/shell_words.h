/* SPDX-License-Identifier: Apache-2.0 */
/* shell_words.h - words as a POSIX shell reads and writes them, without expansion. */
#ifndef LAUNCHER_UTIL_SHELL_WORDS_H
#define LAUNCHER_UTIL_SHELL_WORDS_H

#include <stdio.h>

/* Splits at blanks outside of '...', "..." and after a backslash.  The words come in one block
 * for free(), NULL at the end.  NULL: a quote is not closed (*open is it), or out of memory
 * (*open is 0). */
char **shell_split(const char *text, char *open);

/* One word, quoted if a shell would take it for something else. */
void shell_quote(FILE *out, const char *word);

/* A command of these words, with blanks between. */
void shell_print(FILE *out, char *const *words);

#endif
