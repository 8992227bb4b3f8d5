/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_REPORT_CORE_FILE_H
#define LAUNCHER_REPORT_CORE_FILE_H

#include <stddef.h>

#include "launcher/workers/worker.h"

/* Says in words where the core file of a worker is, as far as /proc/sys/kernel/core_pattern shows
 * it. */
void core_file_find(const struct worker *worker, const char *program, char *text, size_t size);

/* For tests: */

/* Expands the pattern as the kernel does; -1: only the kernel can (%t). */
int core_file_name(const char *pattern, int uses_pid, const struct worker *worker,
                   const char *program, char *name, size_t size);

#endif
