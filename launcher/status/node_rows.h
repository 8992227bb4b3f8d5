/* SPDX-License-Identifier: Apache-2.0 */
/* node_rows.h - this node's ranks as the status page shows them (rank_row.h).
 *
 * The control page and /proc say what a rank does at the moment of a look.  The share of its time
 * in calls comes from reading the page several times a second, for the whole round.  No rank has to
 * answer. */
#ifndef LAUNCHER_STATUS_NODE_ROWS_H
#define LAUNCHER_STATUS_NODE_ROWS_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "launcher/nodes/control_page_host.h"
#include "launcher/workers/worker.h"

struct node_rows {
    struct event timer;
    const struct control_host *control;
    struct worker *workers; /* [size] */
    int size;
    int64_t looked_ms; /* when the page was last read */
    /* [size], of the round; NULL: no round.  cpu_ms is the last value from /proc, which has none
     * for a process that has ended. */
    struct rank_time {
        int64_t in_calls_ms, cpu_ms;
    } * time;
};

void node_rows_setup(struct node_rows *rows, struct event_base *base,
                     const struct control_host *control);
/* Begins a round.  counts: 1: the time in calls is wanted.  0; -1: out of memory, and no time will
 * be shown. */
int node_rows_begin(struct node_rows *rows, struct worker *workers, int size, int counts);
void node_rows_end(struct node_rows *rows); /* keeps the rows; may be called twice */
void node_rows_free(struct node_rows *rows);

/* Adds the rows.  host: this node's name. */
void node_rows_print(struct node_rows *rows, const char *host, int restarts, struct text *to);

#endif
