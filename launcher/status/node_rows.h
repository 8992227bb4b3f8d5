/* SPDX-License-Identifier: Apache-2.0 */
/* node_rows.h - this node's ranks as the status page shows them (rank_row.h).
 *
 * What a rank does at a moment comes from the control page and /proc, when it is asked for.  How
 * much of its time it is in calls needs looks at the page several times a second, as long as a
 * round runs.  No rank has to answer. */
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
    int64_t looked_ms; /* when the last look was */
    /* [size], of the round; NULL: there is none.  cpu_ms: what /proc said last, since it says
     * nothing of a process that has ended. */
    struct rank_time {
        int64_t in_calls_ms, cpu_ms;
    } * time;
};

void node_rows_setup(struct node_rows *rows, struct event_base *base,
                     const struct control_host *control);
/* A round begins.  counts: the time in calls is wanted.  0; -1: out of memory, and no time will be
 * shown. */
int node_rows_begin(struct node_rows *rows, struct worker *workers, int size, int counts);
void node_rows_end(struct node_rows *rows); /* of the round, whose rows stay; twice is fine */
void node_rows_free(struct node_rows *rows);

/* Adds the rows.  host: this node's name. */
void node_rows_print(struct node_rows *rows, const char *host, int restarts, struct text *to);

#endif
