/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCHER_REPORT_CORE_FILE_H
#define LAUNCHER_REPORT_CORE_FILE_H

#include <stddef.h>

#include "launcher/workers/worker.h"

/* Where the core of a worker that dumped one is, as a sentence: as far as
 * /proc/sys/kernel/core_pattern lets one know. */
void core_file_find(const struct worker *worker, const char *program, char *text, size_t size);

/* Below: for tests. */

/* What the kernel would make of pattern; -1: only it could know (%t). */
int core_file_name(const char *pattern, int uses_pid, const struct worker *worker,
                   const char *program, char *name, size_t size);

#endif
