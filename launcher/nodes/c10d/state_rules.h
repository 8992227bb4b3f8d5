/* SPDX-License-Identifier: Apache-2.0 */
/* state_rules.h - how agents agree, round after round, over a state that each may replace.
 *
 * An agent reads the state, asks what to do (c10d_decide_...), does it to its copy
 * (c10d_apply) and offers that to the store; if another was faster, it takes the
 * other's state and asks again.  All of this is pure: the clock is an argument, nobody
 * is spoken to.
 *
 *   action        what the caller does besides
 *   FINISH        the operation is done
 *   SLEEP         read the state again in a second
 *   *_ERROR, QUIT the operation has failed (QUIT: a spare of a job that is over)
 *   others        c10d_apply(), write; LEAVE_SPARES: the join deadline starts anew
 *
 * The rules are PyTorch's, but for these: a world that is smaller than `min` or has
 * lost a rank is left, not accepted; a spare stays one while there are more
 * participants than `max`; and who has died is told by heartbeats that stand still (heartbeats.h),
 * not by the others' clocks. */
#ifndef LAUNCHER_NODES_C10D_STATE_RULES_H
#define LAUNCHER_NODES_C10D_STATE_RULES_H

#include "launcher/nodes/c10d/state.h"

struct c10d_settings {
    size_t min, max;                                /* nodes */
    int64_t last_call_timeout, keep_alive_interval; /* microseconds */
    int keep_alive_max_attempt;
};

/* One moment on both clocks, in microseconds: heartbeats and the last call are UTC
 * since 1970, what is only ours runs on a clock that nobody sets. */
struct c10d_now {
    int64_t utc, monotonic;
};

enum c10d_action {
    C10D_FINISH,
    C10D_SLEEP,
    C10D_KEEP_ALIVE,
    C10D_JOIN, /* the participants */
    C10D_JOIN_WAIT_LIST,
    C10D_JOIN_SPARES,
    C10D_LEAVE,
    C10D_LEAVE_WAIT_LIST,
    C10D_LEAVE_SPARES,
    C10D_COMPLETE,
    C10D_CLOSE,
    C10D_CLOSED_ERROR,
    C10D_TIMEOUT_ERROR,
    C10D_QUIT
};

/* For a log. */
const char *c10d_action_name(enum c10d_action action);

/* ---- What to do next; `deadline` is monotonic ---------------------------------- */

enum c10d_action c10d_decide_join(const struct c10d_state *state, const struct c10d_node *me,
                                  struct c10d_now now, int64_t deadline,
                                  const struct c10d_settings *settings);
enum c10d_action c10d_decide_leave(const struct c10d_state *state, const struct c10d_node *me,
                                   struct c10d_now now, int64_t deadline);
enum c10d_action c10d_decide_close(const struct c10d_state *state, struct c10d_now now,
                                   int64_t deadline);
enum c10d_action c10d_decide_keep_alive(const struct c10d_state *state, const struct c10d_node *me,
                                        struct c10d_now now, int64_t deadline,
                                        const struct c10d_settings *settings);
int c10d_keep_alive_due(const struct c10d_state *state, const struct c10d_node *me,
                        struct c10d_now now, const struct c10d_settings *settings);
/* At least `min` participants, and each rank from 0 on is somebody's. */
int c10d_world_is_whole(const struct c10d_state *state, const struct c10d_settings *settings);

/* ---- Doing it ------------------------------------------------------------------ */

/* The participants of a round in the order of their ranks: { 0 } is nobody. */
struct c10d_ranks {
    struct c10d_node *nodes; /* with addrs of their own */
    size_t count;
};

/* Those of a complete state, in place of what `ranks` had; -1: no memory, nothing changed. */
int c10d_ranks_take(struct c10d_ranks *ranks, const struct c10d_state *state);
void c10d_ranks_free(struct c10d_ranks *ranks);

/* Those that follow return 0, or -1: no memory; then the state is to be read anew. */

/* Does the action, for which `me` is who does it.  previous: see c10d_complete(). */
int c10d_apply(struct c10d_state *state, enum c10d_action action, const struct c10d_node *me,
               struct c10d_now now, const struct c10d_settings *settings,
               const struct c10d_ranks *previous);

/* The last call begins with the `min`th, the round is complete with the `max`th. */
int c10d_add_participant(struct c10d_state *state, const struct c10d_node *node,
                         struct c10d_now now, const struct c10d_settings *settings,
                         const struct c10d_ranks *previous);
/* The nodes of `previous` (may be NULL) come first, in that order, then the
 * others in the natural order of their names.  Any order is legal: agents read their
 * rank from the state. */
int c10d_complete(struct c10d_state *state, const struct c10d_ranks *previous);
int c10d_add_waiting(struct c10d_state *state, const struct c10d_node *node, struct c10d_now now);
int c10d_add_spare(struct c10d_state *state, const struct c10d_node *node, struct c10d_now now);
int c10d_keep_alive(struct c10d_state *state, const struct c10d_node *node, struct c10d_now now);
void c10d_close(struct c10d_state *state);

/* Takes these roles from the node, and its heartbeat. */
void c10d_remove(struct c10d_state *state, const struct c10d_node *node, unsigned roles,
                 const struct c10d_settings *settings);
/* What follows when participants have gone. */
void c10d_left(struct c10d_state *state, const struct c10d_settings *settings);

#endif
