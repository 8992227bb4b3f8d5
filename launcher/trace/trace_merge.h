/* SPDX-License-Identifier: Apache-2.0 */
/* trace_merge.h - merges the traces that the nodes of a job wrote
 * (launcher/observers/trace_observer.c), or ranks without ctrun, on the clock of the first file.
 *
 * Each file is read twice.  trace_merge_read() checks all files, so that nothing is written if one
 * is refused.  trace_merge_write() copies their lines.  The nodes of a job wrote on one clock.
 * Parts on another clock are moved by the difference of the wall clocks. */
#ifndef LAUNCHER_TRACE_TRACE_MERGE_H
#define LAUNCHER_TRACE_TRACE_MERGE_H

#include <stddef.h>
#include <stdio.h>

#include "runtime/util/error.h"

struct trace_merge {
    char *const *paths; /* the caller's */
    int count;
    struct merge_part *parts; /* sorted by number */
    size_t part_count;
};

/* Reads the files.  ct_last_error() has the error. */
ct_status trace_merge_read(struct trace_merge *merge, char *const *paths, int count);
int trace_merge_shifts(const struct trace_merge *merge, int file); /* 1: it is on another clock */
/* Writes the merged trace.  The caller must check that `out` took all of it. */
ct_status trace_merge_write(struct trace_merge *merge, FILE *out);
void trace_merge_free(struct trace_merge *merge); /* must also be called after a failure */

#endif
