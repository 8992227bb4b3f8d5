/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeats.h - who has died, by the clock of the one who looks.
 *
 * A heartbeat is a time on its writer's clock, which may be wrong by minutes;
 * that it changes is proof of life on any clock.  So each agent remembers the last
 * value it saw of each node, and for how long it has seen it stand still. */
#ifndef LAUNCHER_NODES_C10D_HEARTBEATS_H
#define LAUNCHER_NODES_C10D_HEARTBEATS_H

#include "launcher/nodes/c10d/state_rules.h"

struct c10d_watched {
    struct c10d_node node; /* addr is ours */
    int64_t heartbeat;
    int64_t still;  /* microseconds without a change */
    int64_t absent; /* microseconds since it was last in a state */
    int dropped;    /* c10d_drop_dead() took it away: 1 news, 2 told */
};

/* { 0 } has seen nobody. */
struct c10d_watch {
    struct c10d_watched *list; /* sorted by node */
    size_t count;
    int64_t last_look; /* monotonic */
};

/* Looks at a state that was just read, and takes out of this copy who has stood still
 * for more than keep_alive_interval * keep_alive_max_attempt, from every list, with the
 * rule for those who leave.  Never `me`.  Of the time since the last look no more
 * than keep_alive_interval counts: who was stopped himself has not seen others stand still.
 * Returns how many were taken out, or -1: no memory, the state is as it was. */
int c10d_drop_dead(struct c10d_state *state, struct c10d_watch *watch, const struct c10d_node *me,
                   int64_t monotonic, const struct c10d_settings *settings);

/* The next node that was taken out and not told of yet, to be logged; NULL: no more. */
const struct c10d_node *c10d_next_dead(struct c10d_watch *watch);

void c10d_watch_free(struct c10d_watch *watch);

#endif
