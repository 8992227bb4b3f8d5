/* SPDX-License-Identifier: Apache-2.0 */
/* help.h - the text of --help. */
#ifndef CONFIG_HELP_H
#define CONFIG_HELP_H

#include <stdio.h>

void options_help(FILE *out);

#endif
