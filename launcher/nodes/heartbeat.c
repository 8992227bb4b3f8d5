/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeat.c - see heartbeat.h. */
#include "launcher/nodes/heartbeat.h"

#include <event2/event.h>

#include "runtime/util/clock.h"

#define INTERVAL_MS 1000                    /* time between two ticks */
#define LEAST_PATIENCE_MS (2 * INTERVAL_MS) /* smallest patience_ms; a message may be late */

static void heartbeat_tick(evutil_socket_t fd, short what, void *arg)
{
    struct heartbeat *heartbeat = arg;
    const int64_t now = clock_ms();

    (void)fd;
    (void)what;
    if (now - heartbeat->last > 2 * INTERVAL_MS) {
        heartbeat->woke = now; /* messages from the pause are not read yet */
        heartbeat->stood_still_ms = now - heartbeat->last;
    }
    heartbeat->last = now;
    heartbeat->beat(heartbeat->arg);
}

void heartbeat_setup(struct heartbeat *heartbeat, struct event_base *base,
                     const struct rdzv_conf *conf, int is_fixed, void (*beat)(void *arg), void *arg)
{
    const int64_t seconds = is_fixed && !conf->keep_alive_given
                                ? 5
                                : (int64_t)conf->keep_alive_interval * conf->keep_alive_max_attempt;
    const int64_t wanted_ms = 1000 * seconds;

    *heartbeat =
        (struct heartbeat){ .patience_ms =
                                wanted_ms > LEAST_PATIENCE_MS ? wanted_ms : LEAST_PATIENCE_MS,
                            .beat = beat,
                            .arg = arg };
    event_assign(&heartbeat->tick, base, -1, EV_PERSIST, heartbeat_tick, heartbeat);
}

void heartbeat_start(struct heartbeat *heartbeat)
{
    const struct timeval interval = { INTERVAL_MS / 1000, INTERVAL_MS % 1000 * 1000 };

    heartbeat->last = heartbeat->woke = clock_ms();
    heartbeat->stood_still_ms = 0;
    event_add(&heartbeat->tick, &interval);
}

void heartbeat_stop(struct heartbeat *heartbeat)
{
    event_del(&heartbeat->tick);
}

int heartbeat_stood_still(const struct heartbeat *heartbeat)
{
    const int64_t now = clock_ms(), since = now - heartbeat->last;

    if (since > 2 * INTERVAL_MS) /* this ctrun has just woken, before its tick */
        return (int)(since / 1000);
    return now - heartbeat->woke <= 2 * INTERVAL_MS ? (int)(heartbeat->stood_still_ms / 1000) : 0;
}

int heartbeat_is_silent(const struct heartbeat *heartbeat, int64_t last_message)
{
    return clock_ms() - (last_message > heartbeat->woke ? last_message : heartbeat->woke)
           > heartbeat->patience_ms;
}
