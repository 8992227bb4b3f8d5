/* SPDX-License-Identifier: Apache-2.0 */
/* root_cause.h - which rank caused a failure: a graph of the ranks of a round.
 *
 * When a call fails because of another rank, libct writes that rank into the control page (struct
 * control_blame).  This is an edge from the failed rank to the rank that it blames.  A chain of
 * failures starts at a rank without an edge.  Each ctrun of a job has the same graph, because the
 * ends of all workers are sent to all nodes. */
#ifndef LAUNCHER_REPORT_ROOT_CAUSE_H
#define LAUNCHER_REPORT_ROOT_CAUSE_H

#include "runtime/monitor/control_page.h"

/* What a root did; the first kind takes precedence. */
enum root_kind {
    ROOT_NONE,      /* no rank blames another: the first failure is the root cause */
    ROOT_KILLED,    /* died of a signal that cannot be the answer to another failure */
    ROOT_EXITED,    /* exited with a code, or aborted */
    ROOT_MISMATCH,  /* made a different call than most ranks */
    ROOT_LEFT,      /* ended with exit code 0 while others were in a call */
    ROOT_FAILED,    /* one of its calls failed, and ctrun ended it */
    ROOT_DESTROYED, /* destroyed the group while others were in a call */
    ROOT_STOPPED,   /* was stopped by a signal, a debugger or the freezer */
    ROOT_DEADLOCK,  /* several ranks wait for each other */
    ROOT_LATE       /* did not come to a call in time */
};

struct root_cause {
    enum root_kind kind;
    int rank;   /* the first rank of the root */
    int victim; /* the first rank that failed because of the root; -1: no rank did */
    int code; /* ctrun's exit code: the root's if it failed by itself, 1 if it left with 0, else the
                 victim's */
    int is_signal; /* the code is 128 + a signal */
};

struct root_rank;

struct root_graph {
    int world, deaths;
    struct root_rank *ranks; /* [world]; NULL: out of memory, so there is no graph */
    unsigned walk;           /* the number of the last walk */
    unsigned edges;          /* how often edges were added: earlier walks are not valid */
};

void root_graph_begin(struct root_graph *graph, int world); /* a new round; forgets the last one */
void root_graph_free(struct root_graph *graph);

/* `count` workers ended: death->rank and the ranks after it.  The first death of a rank counts. */
void root_graph_died(struct root_graph *graph, const struct control_death *death, int count);
/* Adds the edge of a living rank. */
void root_graph_blames(struct root_graph *graph, int rank, const struct control_blame *blame);
/* Says whether the rank blames another. */
int root_graph_has_edge(const struct root_graph *graph, int rank);

/* Marks and gives the rank at the end of the chain that starts at `rank`: `rank` itself, if it
 * blames no other.  If the chain ends in a circle, marks the whole circle and gives a living rank
 * of it. */
int root_graph_end(struct root_graph *graph, int rank);
int root_graph_is_marked(const struct root_graph *graph, int rank);

/* Finds the root cause when all workers of the round have ended. */
struct root_cause root_graph_find(struct root_graph *graph);
/* "rank 2 (pid 4310) left with exit code 0 while ranks 0-1 and 3 were in barrier #4" */
void root_graph_words(struct root_graph *graph, const struct root_cause *root, char *text,
                      size_t size);

#endif
