/* SPDX-License-Identifier: Apache-2.0 */
/* trace_merge.h - merges traces on the clock of the first file.  The traces are from the nodes of a
 * job (launcher/observers/trace_observer.c), or from ranks without ctrun.
 *
 * Each file is read twice.  trace_merge_read() checks all files, so that nothing is written if a
 * file is refused.  trace_merge_write() copies the lines of the files.  The nodes of a job normally
 * write their times on the same clock.  Parts on another clock are moved by the difference of the
 * wall clocks. */
#ifndef LAUNCHER_TRACE_TRACE_MERGE_H
#define LAUNCHER_TRACE_TRACE_MERGE_H

#include <stddef.h>
#include <stdio.h>

#include "runtime/util/error.h"

struct trace_merge {
    char *const *paths; /* the caller owns the paths */
    int count;
    struct merge_part *parts; /* sorted by number */
    size_t part_count;
};

/* Reads and checks the files.  If it fails, ct_last_error() returns the error message. */
ct_status trace_merge_read(struct trace_merge *merge, char *const *paths, int count);
/* Returns 1 if parts of the file are moved, since they are on another clock. */
int trace_merge_shifts(const struct trace_merge *merge, int file);
/* Writes the merged trace.  The caller must check that `out` accepted all of it. */
ct_status trace_merge_write(struct trace_merge *merge, FILE *out);
void trace_merge_free(struct trace_merge *merge); /* must also be called after a failure */

#endif
