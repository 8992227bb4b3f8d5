/* SPDX-License-Identifier: Apache-2.0 */
/* source_lines.h - finds with external tools the source lines that ranks execute. */
#ifndef LAUNCHER_INSPECT_SOURCE_LINES_H
#define LAUNCHER_INSPECT_SOURCE_LINES_H

#include "launcher/inspect/snapshot.h"

/* For each call that a living rank is in, sets ->where to its source line, such as "train.c:88
 * (step)".  Sets it to "train+0x1189" if the program has no debug information, or if neither
 * eu-addr2line nor addr2line is installed. */
void source_lines(struct job_snapshot *job);

/* The same for an event loop, which must not wait for a tool.  Sets ->where to source lines that
 * are known from earlier calls, and to "train+0x1189" otherwise.  A thread looks up new places. */
void source_lines_known(struct job_snapshot *job);

/* Returns 1 if the process is a Python interpreter. */
int python_is_it(const struct process_snapshot *process);

/* Writes the Python line of the rank's main thread, such as "train.py:12 (step)".  Returns 1, or 0
 * if the rank is not a Python process, or py-spy failed or is not installed. */
int python_line(const struct rank_snapshot *rank, char *text, size_t size);

/* The functions below are public for tests only. */

/* Writes text such as "train.c:88 (step)" from the two lines that addr2line -f prints for an
 * address.  Returns 1, or 0 if the two lines contain no source line. */
int source_words(const char *function, const char *place, char *text, size_t size);

/* Writes the innermost frame of the main thread in `dump`, the output of `py-spy dump`.  Returns 1,
 * or 0 if there is no such frame. */
int python_frame(const char *dump, char *text, size_t size);

#endif
