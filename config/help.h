/* SPDX-License-Identifier: Apache-2.0 */
/* help.h - prints the text of --help and the completion scripts of shells from a table of options.
 * ctrun's table is in option_table.c, and ctctl's table is in launcher/ctctl/command_table.c. */
#ifndef CONFIG_HELP_H
#define CONFIG_HELP_H

#include <stdio.h>

#include "config/option_row.h"

extern const struct program_words ctrun_words;

/* Prints all options for --help, or the common ones for -h. */
void options_help(FILE *out, int common_only);
/* Prints one option, with its names on the left in `width` columns and its help on the right.  On a
 * narrow terminal the help is below the names. */
void option_help(FILE *out, const struct option_row *row, int width);
/* Prints the text in lines that are broken at spaces where the terminal ends.  The text starts in
 * column `indent`. */
void print_wrapped(FILE *out, const char *text, int indent);
/* Returns the length of the first sentence without its full stop.  The text may also be a few words
 * that have no full stop. */
int first_sentence(const char *text);

/* Prints the completion script for `shell`, which is "bash", "zsh" or "fish". */
void completion_print(FILE *out, const char *shell, const struct program_words *program);

#endif
