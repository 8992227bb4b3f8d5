/* SPDX-License-Identifier: Apache-2.0 */
/* shell_words.c - quotes words, and splits text into words.
 *
 * Splitting follows the quoting rules of POSIX (Shell Command Language, 2.2).  A backslash quotes
 * the next character, and single quotes quote all characters.  Within double quotes, a backslash is
 * an ordinary character unless $ ` " \ or a newline follows. */
#include "launcher/util/shell_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Copies a word from *at to `to` without its quotes, and moves *at behind the word.  Returns the
 * end of the copy.  Sets *open to a quote that is not closed, or to 0. */
static char *take_word(const char **at, char *to, char *open)
{
    const char *from = *at;
    char quote = 0;

    for (; *from && (quote || !isspace((unsigned char)*from)); from++) {
        if (quote ? *from == quote : *from == '\'' || *from == '"')
            quote = quote ? 0 : *from;
        else if (*from == '\\' && from[1] && quote != '\''
                 && (!quote || strchr("$`\"\\\n", from[1]))) {
            if (*++from != '\n') /* a backslash before a newline continues the line */
                *to++ = *from;
        } else
            *to++ = *from;
    }
    *at = from;
    *open = quote;
    return to;
}

char **shell_split(const char *text, char *open)
{
    /* A word has at least one character, and white space follows each word but the last. */
    const size_t most = strlen(text) / 2 + 2;
    char **words = malloc(most * sizeof *words + strlen(text) + 1), *to;
    size_t count = 0;

    *open = 0;
    if (!words)
        return NULL;
    to = (char *)(words + most);
    for (;;) {
        while (isspace((unsigned char)*text))
            text++;
        if (!*text)
            break;
        words[count++] = to;
        to = take_word(&text, to, open);
        *to++ = '\0';
    }
    words[count] = NULL;
    if (!*open)
        return words;
    free(words);
    return NULL;
}

void shell_quote(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=./,:@%^";

    if (*word && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    fputc('\'', out);
}

void shell_print(FILE *out, char *const *words)
{
    for (int i = 0; words[i]; i++) {
        if (i > 0)
            fputc(' ', out);
        shell_quote(out, words[i]);
    }
}
