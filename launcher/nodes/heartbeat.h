/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeat.h - is there still somebody at the other end of a link?
 *
 * TCP notices a cut cable (socket_notice_silence), but the kernel of a host answers for a
 * ctrun that is stopped or swapped out.  So both ends say something every interval, and who
 * was not heard for `patience_ms` is taken for lost.  Whoever judges may have stood still
 * himself: then nobody has been silent for longer than since he woke. */
#ifndef LAUNCHER_NODES_HEARTBEAT_H
#define LAUNCHER_NODES_HEARTBEAT_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "config/parse_nodes.h"

struct pulse {
    struct event tick;
    int64_t interval_ms, patience_ms;
    int64_t last, woke;
    void (*beat)(void *arg); /* every interval: say something, and look who is silent */
    void *arg;
};

/* --rdzv-conf=keep_alive_interval and keep_alive_max_attempt.  A static job that was not given
 * them has 1 s, five times. */
void pulse_setup(struct pulse *pulse, struct event_base *base, const struct rdzv_conf *conf,
                 int is_static, void (*beat)(void *arg), void *arg);
void pulse_start(struct pulse *pulse);
void pulse_stop(struct pulse *pulse);

/* heard: clock_ms() of the last word of the other side. */
int pulse_is_silent(const struct pulse *pulse, int64_t heard);

#endif
