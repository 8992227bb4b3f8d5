/* SPDX-License-Identifier: Apache-2.0 */
/* source_lines.h - the source lines in which ranks are, by external tools. */
#ifndef LAUNCHER_CTCTL_SOURCE_LINES_H
#define LAUNCHER_CTCTL_SOURCE_LINES_H

#include "launcher/inspect/snapshot.h"

/* Sets ->where of each call that a living rank is in: "train.c:88 (step)" if eu-addr2line or
 * addr2line is installed and the program has debug information, else "train+0x1189". */
void source_lines(struct job_snapshot *job);

/* The process is a Python interpreter. */
int python_is_it(const struct process_snapshot *process);

/* 1: text is where its main thread is, "train.py:12 (step)"; 0: py-spy is not installed, or failed.
 */
int python_line(const struct rank_snapshot *rank, char *text, size_t size);

/* Below: for tests. */

/* The two lines that addr2line -f prints for an address -> "train.c:88 (step)"; 0: they name no
 * line. */
int source_words(const char *function, const char *place, char *text, size_t size);

/* 1: text is the innermost frame of the main thread in the output of `py-spy dump`. */
int python_frame(const char *dump, char *text, size_t size);

#endif
