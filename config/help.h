/* SPDX-License-Identifier: Apache-2.0 */
/* help.h - the text of --help, and completion scripts of shells. */
#ifndef CONFIG_HELP_H
#define CONFIG_HELP_H

#include <stdio.h>

void options_help(FILE *out);

/* completion.c.  shell: bash or zsh. */
void completion_print(FILE *out, const char *shell);

#endif
