/* SPDX-License-Identifier: Apache-2.0 */
/* trace_merge.h - the traces that the nodes of a job wrote (launcher/observers/trace_observer.c),
 * or ranks without ctrun, as one, on the clock of the first file.
 *
 * Each file is read twice.  trace_merge_read() checks all of them, so that nothing is written if it
 * refuses one.  trace_merge_write() copies their lines.  The nodes of a job wrote on one clock.
 * Parts that are on another clock are moved by what the wall clocks showed.
 */
#ifndef LAUNCHER_TRACE_TRACE_MERGE_H
#define LAUNCHER_TRACE_TRACE_MERGE_H

#include <stddef.h>
#include <stdio.h>

#include "runtime/util/error.h"

struct trace_merge {
    char *const *paths; /* the caller's */
    int count;
    struct merge_part *parts; /* by number */
    size_t part_count;
};

/* The sentence is ct_last_error()'s. */
ct_status trace_merge_read(struct trace_merge *merge, char *const *paths, int count);
int trace_merge_shifts(const struct trace_merge *merge, int file); /* it is on another clock */
/* That `out` took all of it is for the caller to see. */
ct_status trace_merge_write(struct trace_merge *merge, FILE *out);
void trace_merge_free(struct trace_merge *merge); /* after a failure, too */

#endif
