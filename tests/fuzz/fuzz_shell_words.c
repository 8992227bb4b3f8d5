/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_shell_words.c - the command of --exec-on.  Words that are printed as a command are the
 * same words when it is split again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/util/shell_words.h"
#include "tests/fuzz/input.h"

static void come_back(char *const *words)
{
    char *text = NULL, **again, open = 'x';
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    holds(out != NULL);
    shell_print(out, words);
    holds(fclose(out) == 0);
    again = shell_split(text, &open);
    holds(again && !open);
    for (int i = 0; words[i] || again[i]; i++)
        holds(words[i] && again[i] && !strcmp(words[i], again[i]));
    free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), **words, open = 'x';

    holds(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    words = shell_split(text, &open);
    holds(words ? !open : open == '\'' || open == '"');
    if (words)
        come_back(words);
    free(words);
    free(text);
    return 0;
}
