/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeat.c - a word every interval, and who has been silent for too long. */
#include "launcher/nodes/heartbeat.h"

#include <event2/event.h>

#include "runtime/util/clock.h"

static void tick(evutil_socket_t fd, short what, void *arg)
{
    struct pulse *pulse = arg;
    const int64_t now = clock_ms();

    (void)fd;
    (void)what;
    if (now - pulse->last > 2 * pulse->interval_ms)
        pulse->woke = now; /* what the others said meanwhile was not read yet */
    pulse->last = now;
    pulse->beat(pulse->arg);
}

void pulse_setup(struct pulse *pulse, struct event_base *base, const struct rdzv_conf *conf,
                 int is_static, void (*beat)(void *arg), void *arg)
{
    const int is_ours = is_static && !conf->keep_alive_given;
    const int64_t interval = is_ours ? 1 : conf->keep_alive_interval;

    *pulse = (struct pulse){ .interval_ms = 1000 * interval, .beat = beat, .arg = arg };
    pulse->patience_ms = pulse->interval_ms * (is_ours ? 5 : conf->keep_alive_max_attempt);
    event_assign(&pulse->tick, base, -1, EV_PERSIST, tick, pulse);
}

void pulse_start(struct pulse *pulse)
{
    const struct timeval interval = { pulse->interval_ms / 1000, pulse->interval_ms % 1000 * 1000 };

    pulse->last = pulse->woke = clock_ms();
    event_add(&pulse->tick, &interval);
}

void pulse_stop(struct pulse *pulse)
{
    event_del(&pulse->tick);
}

int pulse_is_silent(const struct pulse *pulse, int64_t heard)
{
    return clock_ms() - (heard > pulse->woke ? heard : pulse->woke) > pulse->patience_ms;
}
