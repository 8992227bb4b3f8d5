/* SPDX-License-Identifier: Apache-2.0 */
/* words.h - the words of a command, and the process that it becomes. */
#ifndef DETECTION_BENCH_WORDS_H
#define DETECTION_BENCH_WORDS_H

#include <stddef.h>
#include <sys/types.h>

#define MOST_WORDS 48

/* Starts as { .count = 0 }. */
struct words {
    char room[8192];
    size_t used;
    char *list[MOST_WORDS];
    int count;
};

void words_put(struct words *words, const char *text);

/* The words of text, which spaces part; each %LETTER is replaced by that letter's value. */
void words_put_all(struct words *words, const char *text, const char *letters, const int *values);

/* Starts them.  in, out: what becomes stdin and stdout; -1: /dev/null.  quiet: nothing it says on
 * stderr is shown. */
pid_t words_spawn(struct words *words, int quiet, int in, int out);

#endif
