/* SPDX-License-Identifier: Apache-2.0 */
/* help.h - what is made of a table of options: the text of --help and completion scripts of shells.
 * ctrun's table is option_table.c, ctctl's launcher/ctctl/command_table.c. */
#ifndef CONFIG_HELP_H
#define CONFIG_HELP_H

#include <stdio.h>

#include "config/option_row.h"

extern const struct program_words ctrun_words;

void options_help(FILE *out);
/* One option: its names on the left, `width` wide, its help on the right. */
void option_help(FILE *out, const struct option_row *row, int width);

/* completion.c.  shell: bash, zsh or fish. */
void completion_print(FILE *out, const char *shell, const struct program_words *program);

#endif
