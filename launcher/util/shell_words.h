/* SPDX-License-Identifier: Apache-2.0 */
/* shell_words.h - reads and writes words as a POSIX shell does, without expansion. */
#ifndef LAUNCHER_UTIL_SHELL_WORDS_H
#define LAUNCHER_UTIL_SHELL_WORDS_H

#include <stdio.h>

/* Splits text at white space that is neither within '...' or "..." nor after a backslash.  Returns
 * an array of the words, which ends with NULL and is freed with one free().  Returns NULL if memory
 * is exhausted (*open is 0), or if a quote is not closed (*open is that quote). */
char **shell_split(const char *text, char *open);

/* Writes a word, with quotes if a shell would otherwise read it differently. */
void shell_quote(FILE *out, const char *word);

/* Writes the words of a command with spaces between them. */
void shell_print(FILE *out, char *const *words);

#endif
