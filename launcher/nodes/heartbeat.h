/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeat.h - tells whether the ctrun at the other end of a link still runs.
 *
 * TCP notices a cut cable (socket_notice_silence), but the kernel of a host answers for a ctrun
 * that is stopped or swapped out.  So both ends send a message every second.  An end counts as lost
 * when it has sent nothing for as long as this end's options allow: the options of two nodes may
 * differ, but all send a message each second.  A ctrun that stood still itself counts the silence
 * of the others from when it went on. */
#ifndef LAUNCHER_NODES_HEARTBEAT_H
#define LAUNCHER_NODES_HEARTBEAT_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "config/values/parse_nodes.h"

struct heartbeat {
    struct event tick;
    int64_t patience_ms;
    int64_t last, woke, stood_still_ms; /* last tick; first after a standstill; its length */
    void (*beat)(void *arg);            /* every second: sends, and checks which ends are silent */
    void *arg;
};

/* The patience is --rdzv-conf=keep_alive_interval times keep_alive_max_attempt, at least 2 s; 5 s
 * in a fixed job with neither option. */
void heartbeat_setup(struct heartbeat *heartbeat, struct event_base *base,
                     const struct rdzv_conf *conf, int is_fixed, void (*beat)(void *arg),
                     void *arg);
void heartbeat_start(struct heartbeat *heartbeat);
void heartbeat_stop(struct heartbeat *heartbeat);

/* Gives for how many seconds this ctrun itself stood still until a moment ago; 0: it did not. */
int heartbeat_stood_still(const struct heartbeat *heartbeat);

/* last_message: clock_ms() of the last message of the other end. */
int heartbeat_is_silent(const struct heartbeat *heartbeat, int64_t last_message);

#endif
