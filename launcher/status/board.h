/* SPDX-License-Identifier: Apache-2.0 */
/* board.h - what all nodes of a job show of their ranks, as they sent it last: the coordinator's
 * collection, and its two forms, JSON and the text that Prometheus reads. */
#ifndef LAUNCHER_STATUS_BOARD_H
#define LAUNCHER_STATUS_BOARD_H

#include <stdint.h>

#include "launcher/status/rank_row.h"

struct board_node {
    struct text shown;        /* its last whole answer; line points into it */
    struct status_line *line; /* [lines] */
    int lines;
    struct text coming; /* the pieces so far of the one that is coming, to this look: */
    unsigned coming_look;
    int64_t answered_ms; /* when the last one was whole */
    unsigned look;       /* that it answered */
};

struct board {
    struct board_node *node; /* [nodes] */
    int nodes;
    unsigned look; /* number of the newest one */
};

/* So many nodes are in the round.  0; -1: out of memory, and there are as many as before. */
int board_set_nodes(struct board *board, int nodes);
void board_free(struct board *board);

/* A piece of a node's answer to a look.  -1: it is none, and what came of the answer is dropped. */
int board_take(struct board *board, int node, unsigned look, int is_last, const char *text,
               size_t size);
/* How many nodes have answered the newest look. */
int board_answers(const struct board *board);

/* Of the whole job. */
struct job_facts {
    const char *job, *program, *state, *version;
    int world, restarts;
    int node, nodes;         /* this node; how many are in the round */
    double started_s;        /* since 1970 */
    const struct text *said; /* by this ctrun: lines */
};

void board_json(const struct board *board, const struct job_facts *facts, struct text *to);
void board_metrics(const struct board *board, const struct job_facts *facts, struct text *to);

#endif
