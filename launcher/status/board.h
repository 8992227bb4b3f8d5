/* SPDX-License-Identifier: Apache-2.0 */
/* board.h - the state of all ranks of a job, from the last answer of each node.  The coordinator of
 * the job collects the answers, and writes the state as JSON and as text for Prometheus. */
#ifndef LAUNCHER_STATUS_BOARD_H
#define LAUNCHER_STATUS_BOARD_H

#include <stdint.h>

#include "launcher/status/rank_row.h"

struct board_node {
    struct text shown;        /* last complete answer of the node; `line` points into `shown` */
    struct status_line *line; /* lines of `shown`; NULL if the node has not answered yet */
    int lines;
    struct text coming; /* pieces of the next answer, which is for the look coming_look */
    unsigned coming_look;
    int64_t answered_ms; /* time at which the last answer was complete; 0 before the first */
    unsigned look;       /* number of the look to which the last answer belongs */
};

struct board {
    struct board_node *node; /* array of `nodes` nodes */
    int nodes;
    unsigned look; /* number of the newest look, a request to all nodes for their rows */
    struct board_verdict {
        int is_stuck; /* 0 if the ranks are all in the call, which takes long */
        struct text text;
    } * verdict; /* [verdicts] the verdicts over all nodes */
    int verdicts;
};

/* Sets the number of nodes in the round.  Returns 0.  Returns -1 if memory runs out, and leaves the
 * number unchanged. */
int board_set_nodes(struct board *board, int nodes);
void board_free(struct board *board);

/* Adds a piece of a node's answer to a look.  Returns 0, or -1 if the answer is complete but not
 * valid, in which case its pieces are dropped. */
int board_take(struct board *board, int node, unsigned look, int is_last, const char *text,
               size_t size);
/* Returns the number of nodes that have answered the newest look. */
int board_answers(const struct board *board);

/* Makes one verdict of those that nodes have sent about the same call, and finds what the ranks of
 * other nodes do that a node waits for (board_verdict.c).  Without memory there are fewer verdicts.
 */
void board_judge(struct board *board);
void board_drop_verdicts(struct board *board);
/* Returns the stage of the line's rank by what its node and the verdicts say. */
enum rank_stage board_stage(const struct status_line *line);

/* Facts about the whole job. */
struct job_facts {
    const char *job, *program, *state, *version;
    int world, restarts;
    int node, nodes;         /* number of this node; number of nodes in the round */
    double started_s;        /* seconds since 1970 */
    const struct text *said; /* lines that this ctrun has logged */
};

void board_json(const struct board *board, const struct job_facts *facts, struct text *to);
void board_metrics(const struct board *board, const struct job_facts *facts, struct text *to);

#endif
