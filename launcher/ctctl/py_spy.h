/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_CTCTL_PY_SPY_H
#define LAUNCHER_CTCTL_PY_SPY_H

#include "launcher/inspect/snapshot.h"

/* Is it a Python interpreter? */
int python_is_it(const struct process_snapshot *process);

/* Where its main thread is, "train.py:12 (step)", if py-spy is installed and can see it: 1. */
int python_line(const struct rank_snapshot *rank, char *text, size_t size);

/* Below: for tests. */

/* The innermost frame of the main thread in what `py-spy dump` wrote: 1. */
int python_frame(const char *dump, char *text, size_t size);

#endif
