/* SPDX-License-Identifier: Apache-2.0 */
/* node_rows.h - the ranks of this node as the status page shows them (rank_row.h).
 *
 * When the page asks for the rows, the control page and /proc show what each rank does at that
 * time.  To measure the time that ranks spend in calls, ctrun reads the control page several times
 * a second during the whole round.  The ranks themselves do not have to answer. */
#ifndef LAUNCHER_STATUS_NODE_ROWS_H
#define LAUNCHER_STATUS_NODE_ROWS_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "launcher/nodes/control_page_host.h"
#include "launcher/workers/worker.h"

struct node_rows {
    struct event timer;
    const struct control_host *control;
    struct worker *workers; /* array of `size` workers */
    int size;
    int64_t looked_ms; /* time at which the control page was last read */
    /* Times of the `size` workers in this round; NULL if there is no round.  cpu_ms is the last
     * value from /proc, since /proc has no value for a process that has ended. */
    struct rank_time {
        int64_t in_calls_ms, cpu_ms;
    } * time;
};

void node_rows_setup(struct node_rows *rows, struct event_base *base,
                     const struct control_host *control);
/* Begins a round.  Measures the time in calls if `counts` is 1.  Returns 0, or -1 if memory runs
 * out, so that the rows have no times. */
int node_rows_begin(struct node_rows *rows, struct worker *workers, int size, int counts);
void node_rows_end(struct node_rows *rows); /* the rows stay readable; may be called twice */
void node_rows_free(struct node_rows *rows);

/* Adds the rows of this node to `to`.  `host` is this node's name. */
void node_rows_print(struct node_rows *rows, const char *host, int restarts, struct text *to);

#endif
