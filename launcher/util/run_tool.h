/* SPDX-License-Identifier: Apache-2.0 */
/* run_tool.h - runs an external tool and collects its output. */
#ifndef LAUNCHER_UTIL_RUN_TOOL_H
#define LAUNCHER_UTIL_RUN_TOOL_H

#include <stddef.h>

#include "runtime/util/text.h"

/* Returns 1 if a folder of PATH has a program of that name. */
int tool_is_there(const char *name);

/* Runs a tool without input, and adds its stdout and stderr to `out`, at most 8 MiB.  Kills the
 * tool after `seconds`.  Returns the exit code of the tool, or -1 if the tool could not be run, was
 * killed by a signal, or exceeded the time. */
int tool_run(char *const *argv, int seconds, struct text *out);

#endif
