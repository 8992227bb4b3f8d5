/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_CTCTL_PY_SPY_H
#define LAUNCHER_CTCTL_PY_SPY_H

#include "launcher/inspect/snapshot.h"

/* The process is a Python interpreter. */
int python_is_it(const struct process_snapshot *process);

/* 1: text is where its main thread is, "train.py:12 (step)"; 0: py-spy is not installed, or failed.
 */
int python_line(const struct rank_snapshot *rank, char *text, size_t size);

/* Below: for tests. */

/* 1: text is the innermost frame of the main thread in the output of `py-spy dump`. */
int python_frame(const char *dump, char *text, size_t size);

#endif
