/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_REPORT_CORE_FILE_H
#define LAUNCHER_REPORT_CORE_FILE_H

#include <stddef.h>

#include "launcher/workers/worker.h"

/* Writes the location of a worker's core file into `text`, as far as /proc/sys/kernel/core_pattern
 * tells it. */
void core_file_find(const struct worker *worker, const char *program, char *text, size_t size);

/* Expands a core_pattern as the kernel does, and appends ".PID" if `uses_pid` is not 0 and the
 * pattern has no %p.  Returns 0, or -1 if only the kernel can expand the pattern, for example %t.
 * Other files call this function only in tests. */
int core_file_name(const char *pattern, int uses_pid, const struct worker *worker,
                   const char *program, char *name, size_t size);

#endif
