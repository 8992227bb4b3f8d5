/* SPDX-License-Identifier: Apache-2.0 */
/* root_cause.h - finds the rank that caused a failure, in a graph of the ranks of a round.
 *
 * When a call fails because of another rank, libct writes the number of that rank into the control
 * page (struct control_blame).  This is an edge from the failed rank to the rank that it blames.  A
 * chain of failures starts at a rank without an edge.  All ctruns of a job have the same graph,
 * because each ctrun gets a notice of the end of each worker. */
#ifndef LAUNCHER_REPORT_ROOT_CAUSE_H
#define LAUNCHER_REPORT_ROOT_CAUSE_H

#include "runtime/monitor/control_page.h"

/* How the root cause led to the failure.  If there are several possible root causes, the kind that
 * is first in this list takes precedence. */
enum root_kind {
    ROOT_NONE,     /* no rank blames another rank, so the first failure is the root cause */
    ROOT_KILLED,   /* the rank was killed by a signal that can't be the result of another failure */
    ROOT_EXITED,   /* the rank exited with a code other than 0, or aborted */
    ROOT_MISMATCH, /* the rank made a different call than most ranks */
    ROOT_LEFT,     /* the rank ended with exit code 0 while other ranks were in a call */
    ROOT_FAILED,   /* a call of the rank failed, and ctrun stopped the rank */
    ROOT_DESTROYED, /* the rank destroyed the group while other ranks were in a call */
    ROOT_STOPPED,   /* the rank was stopped by SIGSTOP, a debugger or the cgroup freezer */
    ROOT_DEADLOCK,  /* several ranks wait for each other */
    ROOT_LATE       /* the rank did not come to a call in time */
};

struct root_cause {
    enum root_kind kind;
    int rank;   /* first rank of the root cause */
    int victim; /* first rank that failed because of the root cause; -1 if no rank did */
    /* ctrun's exit code.  This is the code of `rank` if that rank failed by itself, 1 if it left
     * with exit code 0, else the code of `victim`. */
    int code;
    int is_signal; /* 1 if `code` is 128 plus the number of a signal */
};

struct root_rank;

struct root_graph {
    int world, deaths;
    struct root_rank *ranks; /* array of `world` ranks; NULL, so without edges, if memory ran out */
    unsigned walk;           /* number of the last walk along the edges */
    unsigned edges;          /* number of changes to the edges; each makes earlier walks invalid */
};

/* Empties the graph for a new round. */
void root_graph_begin(struct root_graph *graph, int world);
void root_graph_free(struct root_graph *graph);

/* Records that `count` workers ended, with the ranks death->rank and following.  Only the first
 * death of a rank is recorded. */
void root_graph_died(struct root_graph *graph, const struct control_death *death, int count);
/* Adds the edge of a rank that still runs. */
void root_graph_blames(struct root_graph *graph, int rank, const struct control_blame *blame);
/* True if the rank blames another rank. */
int root_graph_has_edge(const struct root_graph *graph, int rank);

/* Returns the rank at the end of the chain that starts at `rank`, and marks that rank.  The end is
 * `rank` itself if `rank` blames no other rank.  If the chain ends in a circle, marks all ranks of
 * the circle and returns a rank of the circle that still runs.  If a rank of the chain made a
 * different call than the next one, also marks all ranks that still run: their calls show which
 * rank is wrong. */
int root_graph_end(struct root_graph *graph, int rank);
int root_graph_is_marked(const struct root_graph *graph, int rank);

/* Finds the root cause.  Must be called after all workers of the round have ended. */
struct root_cause root_graph_find(struct root_graph *graph);
/* Writes a root cause as text, such as "rank 2 (pid 4310) left with exit code 0 while ranks 0-1 and
 * 3 were in barrier #4". */
void root_graph_words(struct root_graph *graph, const struct root_cause *root, char *text,
                      size_t size);

#endif
