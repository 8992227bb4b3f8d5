/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeat.h - detects that the ctrun at the other end of a link no longer runs.
 *
 * TCP detects a cut cable (socket_notice_silence()), but not a ctrun that is stopped or swapped
 * out, since the kernel of its host still answers.  So both ends send a message every second.  A
 * ctrun counts the other end as lost after a silence as long as its own options allow, which may
 * differ from the other end's options.  After a ctrun itself did not run for a while, it counts the
 * silence of other ends only from the time at which it runs again. */
#ifndef LAUNCHER_NODES_HEARTBEAT_H
#define LAUNCHER_NODES_HEARTBEAT_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "config/values/parse_nodes.h"

struct heartbeat {
    struct event tick;   /* timer, every second */
    int64_t patience_ms; /* silence after which the other end counts as lost */
    /* last: clock_ms() of the last tick.  woke: clock_ms() of the start, or of the first tick after
     * a pause in which this ctrun did not run.  stood_still_ms: length of that pause; 0 if none. */
    int64_t last, woke, stood_still_ms;
    void (*beat)(void *arg); /* called every second to send a message and to check for silence */
    void *arg;
};

/* Sets patience_ms to --rdzv-conf=keep_alive_interval times keep_alive_max_attempt, but to at least
 * 2 s.  The default in a fixed job is 5 s. */
void heartbeat_setup(struct heartbeat *heartbeat, struct event_base *base,
                     const struct rdzv_conf *conf, int is_fixed, void (*beat)(void *arg),
                     void *arg);
void heartbeat_start(struct heartbeat *heartbeat);
void heartbeat_stop(struct heartbeat *heartbeat);

/* Returns the length, in seconds, of a pause in which this ctrun itself did not run, if the pause
 * ended at most 2 s ago; else 0. */
int heartbeat_stood_still(const struct heartbeat *heartbeat);

/* Returns 1 if the other end has been silent for longer than patience_ms.  last_message is
 * clock_ms() of the other end's last message. */
int heartbeat_is_silent(const struct heartbeat *heartbeat, int64_t last_message);

#endif
