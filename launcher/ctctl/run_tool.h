/* SPDX-License-Identifier: Apache-2.0 */
/* run_tool.h - somebody else's program, asked for an answer. */
#ifndef LAUNCHER_CTCTL_RUN_TOOL_H
#define LAUNCHER_CTCTL_RUN_TOOL_H

#include <stddef.h>

#include "runtime/util/text.h"

/* Is there a program of that name in PATH? */
int tool_is_there(const char *name);

/* Runs it without input; what it writes to both outputs is added to `out`, at most 8 MiB.  After
 * `seconds` it is killed.  Its exit code; -1: it could not be run, or died, or was killed. */
int tool_run(char *const *argv, int seconds, struct text *out);

#endif
