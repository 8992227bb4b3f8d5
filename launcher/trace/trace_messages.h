/* SPDX-License-Identifier: Apache-2.0 */
/* trace_messages.h - the words in which what a node did in a round goes to the file, from memory
 * here or from another node: about it, then of each ring its head, its events in any number of
 * pieces and how many were lost, then the end. */
#ifndef LAUNCHER_TRACE_TRACE_MESSAGES_H
#define LAUNCHER_TRACE_TRACE_MESSAGES_H

#include "runtime/trace/trace_json.h"

enum trace_word {
    TRACE_ABOUT = 'A',  /* struct trace_about */
    TRACE_RING = 'R',   /* struct trace_ring */
    TRACE_OURS = 'O',   /* the same, of ctrun's own */
    TRACE_EVENTS = 'E', /* struct trace_event, some */
    TRACE_LOST = 'L',   /* uint64_t */
    TRACE_END = 'Z'     /* what is missing, as text */
};

#define TRACE_CHUNK 512 /* events at a time: fits into a message between ctruns */

/* What of it can't be, since the other side may be anybody's, is left out. */
void trace_take(struct trace_part *part, struct trace_file *file, int word, const void *data,
                size_t size);

#endif
