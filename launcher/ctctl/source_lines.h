/* SPDX-License-Identifier: Apache-2.0 */
/* source_lines.h - finds the source lines at which ranks are, with external tools. */
#ifndef LAUNCHER_CTCTL_SOURCE_LINES_H
#define LAUNCHER_CTCTL_SOURCE_LINES_H

#include "launcher/inspect/snapshot.h"

/* Sets ->where of each call that a living rank is in to "train.c:88 (step)".  If the program has no
 * debug information, or neither eu-addr2line nor addr2line is installed, sets it to "train+0x1189".
 */
void source_lines(struct job_snapshot *job);

/* Says whether the process is a Python interpreter. */
int python_is_it(const struct process_snapshot *process);

/* Finds where the main thread is.  1: text is "train.py:12 (step)"; 0: py-spy failed or is not
 * installed. */
int python_line(const struct rank_snapshot *rank, char *text, size_t size);

/* Below: for tests. */

/* Makes "train.c:88 (step)" of the two lines that addr2line -f prints for an address.  0: they name
 * no source line. */
int source_words(const char *function, const char *place, char *text, size_t size);

/* Finds the innermost frame of the main thread in the output of `py-spy dump`.  1: text has it; 0:
 * not found. */
int python_frame(const char *dump, char *text, size_t size);

#endif
