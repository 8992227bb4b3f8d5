/* SPDX-License-Identifier: Apache-2.0 */
/* board.h - what the nodes of a job show of their ranks, by their last answers.  The coordinator
 * collects it, and writes it in two forms: JSON and the text that Prometheus reads. */
#ifndef LAUNCHER_STATUS_BOARD_H
#define LAUNCHER_STATUS_BOARD_H

#include <stdint.h>

#include "launcher/status/rank_row.h"

struct board_node {
    struct text shown;        /* its last complete answer; `line` points into it */
    struct status_line *line; /* [lines] */
    int lines;
    struct text coming; /* the pieces of the next answer, to this look: */
    unsigned coming_look;
    int64_t answered_ms; /* when its last answer was complete */
    unsigned look;       /* the look that it answered */
};

struct board {
    struct board_node *node; /* [nodes] */
    int nodes;
    unsigned look; /* number of the newest look */
};

/* Sets the number of nodes in the round.  0; -1: out of memory, and the number is unchanged. */
int board_set_nodes(struct board *board, int nodes);
void board_free(struct board *board);

/* Takes a piece of a node's answer to a look.  -1: the answer is not valid, and its pieces are
 * dropped. */
int board_take(struct board *board, int node, unsigned look, int is_last, const char *text,
               size_t size);
/* Gives the number of nodes that have answered the newest look. */
int board_answers(const struct board *board);

/* Facts about the whole job. */
struct job_facts {
    const char *job, *program, *state, *version;
    int world, restarts;
    int node, nodes;         /* this node; number of nodes in the round */
    double started_s;        /* since 1970 */
    const struct text *said; /* lines that this ctrun has logged */
};

void board_json(const struct board *board, const struct job_facts *facts, struct text *to);
void board_metrics(const struct board *board, const struct job_facts *facts, struct text *to);

#endif
