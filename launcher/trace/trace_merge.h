/* SPDX-License-Identifier: Apache-2.0 */
/* trace_merge.h - the traces that the nodes of a job wrote (trace_host.h), or ranks without ctrun,
 * as one, on the clock of the first file.
 *
 * Each file is read twice.  trace_merge_read() checks it, collects its arrows, whose ids are the
 * same at both ends of a message, and aligns the clocks by them (message_chains.h, clock_align.h).
 * trace_merge_write() copies line by line, with other times.  So memory is needed for arrows only.
 */
#ifndef LAUNCHER_TRACE_TRACE_MERGE_H
#define LAUNCHER_TRACE_TRACE_MERGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "launcher/trace/clock_align.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

struct trace_merge {
    char *const *paths; /* the caller's */
    int count;
    size_t *lines; /* of each that were read: what comes to it meanwhile is left out */
    struct clock_line *clocks;
    struct text arrows, processes; /* struct trace_arrow, struct trace_process */
    int64_t backwards_ns;          /* by which arrows point back, at most */
    int lacks_chains;              /* message_chains_add() left some out */
};

/* The sentence is ct_last_error()'s. */
ct_status trace_merge_read(struct trace_merge *merge, char *const *paths, int count);
/* That `out` took all of it is for the caller to see. */
ct_status trace_merge_write(const struct trace_merge *merge, FILE *out);
void trace_merge_free(struct trace_merge *merge); /* after a failure, too */

#endif
