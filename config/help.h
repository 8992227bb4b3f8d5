/* SPDX-License-Identifier: Apache-2.0 */
/* help.h - prints the text of --help and the completion scripts of shells from a table of options.
 * ctrun's table is in option_table.c, and ctctl's table is in launcher/ctctl/command_table.c. */
#ifndef CONFIG_HELP_H
#define CONFIG_HELP_H

#include <stdio.h>

#include "config/option_row.h"

extern const struct program_words ctrun_words;

void options_help(FILE *out);
/* Prints one option, with its names on the left in `width` columns and its help on the right. */
void option_help(FILE *out, const struct option_row *row, int width);

/* Prints the completion script for `shell`, which is "bash", "zsh" or "fish". */
void completion_print(FILE *out, const char *shell, const struct program_words *program);

#endif
