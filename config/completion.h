/* SPDX-License-Identifier: Apache-2.0 */
/* completion.h - completion scripts of ctrun's options. */
#ifndef CONFIG_COMPLETION_H
#define CONFIG_COMPLETION_H

#include <stdio.h>

/* shell: bash or zsh. */
void completion_print(FILE *out, const char *shell);

#endif
