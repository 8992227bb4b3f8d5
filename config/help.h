/* SPDX-License-Identifier: Apache-2.0 */
/* help.h - what --help says. */
#ifndef CONFIG_HELP_H
#define CONFIG_HELP_H

#include <stdio.h>

void options_help(FILE *out);

#endif
