/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - see words.h. */
#include "bench/detection_bench/words.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/detection_bench/systems.h"

extern char **environ;

static void put(struct words *words, const char *text, size_t length)
{
    char *at = words->room + words->used;

    if (words->used + length + 1 > sizeof words->room || words->count + 1 >= MOST_WORDS) {
        errno = E2BIG;
        die("a command");
    }
    memcpy(at, text, length);
    at[length] = 0;
    words->used += length + 1;
    words->list[words->count++] = at;
    words->list[words->count] = NULL;
}

void words_put(struct words *words, const char *text)
{
    put(words, text, strlen(text));
}

void words_put_all(struct words *words, const char *text, const char *letters, const int *values)
{
    while (*text) {
        char word[1024];
        size_t length = 0;

        for (; *text && *text != ' '; text++) {
            const char *letter = *text == '%' && text[1] ? strchr(letters, text[1]) : NULL;

            if (length + 16 > sizeof word)
                die("a word of a command is too long");
            if (letter) {
                length += (size_t)sprintf(word + length, "%d", values[letter - letters]);
                text++;
            } else {
                word[length++] = *text;
            }
        }
        if (length > 0)
            put(words, word, length);
        text += *text == ' ';
    }
}

pid_t words_spawn(struct words *words, int quiet, int in, int out)
{
    posix_spawn_file_actions_t files;
    pid_t pid;
    int error;

    posix_spawn_file_actions_init(&files);
    if (in >= 0)
        posix_spawn_file_actions_adddup2(&files, in, 0);
    else
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (out >= 0)
        posix_spawn_file_actions_adddup2(&files, out, 1);
    else
        posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    if (quiet) /* what launchers say about deaths that we caused is no news */
        posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    error = posix_spawnp(&pid, words->list[0], &files, NULL, words->list, environ);
    posix_spawn_file_actions_destroy(&files);
    if (error) {
        errno = error;
        die(words->list[0]);
    }
    return pid;
}
