/* SPDX-License-Identifier: Apache-2.0 */
/* connect_retry.c - tries again and again, at pauses that grow from 10 ms to a second.
 *
 * Each attempt is made by the event loop itself, which has little else to do: there are no workers
 * before the nodes have met. */
#include "launcher/nodes/fixed/connect_retry.h"

#include <event2/event.h>

#include "launcher/nodes/node_link.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define ATTEMPT_MS 2000 /* the loop stands still for that long at most */
#define FIRST_WORD_MS 5000
#define NEXT_WORD_MS 30000

/* A wrong secret stays wrong; all else may be a node 0 that is not up yet. */
static void try_to_connect(evutil_socket_t ignored, short what, void *arg)
{
    struct dial *dial = arg;
    const int64_t waited = clock_ms() - dial->since;
    struct timeval pause;
    int fd;
    const ct_status status = link_connect(&dial->meet->policy.secret, dial->meet->address,
                                          dial->meet->port, deadline_after(ATTEMPT_MS), &fd);

    (void)ignored;
    (void)what;
    if (status == CT_OK) {
        dial->hooks->connected(dial->arg, fd);
        return;
    }
    if (status == CT_ERR_INVALID || status == CT_ERR_UNSUPPORTED) {
        log_line(LOG_ERROR, "%s", ct_last_error());
        dial->hooks->gave_up(dial->arg, "");
        return;
    }
    if (waited >= dial->speak) {
        log_line(LOG_WARN, "waiting %d s for node 0: %s", (int)(waited / 1000), ct_last_error());
        dial->speak += NEXT_WORD_MS;
    }
    if (waited >= dial->timeout * INT64_C(1000)) {
        log_line(LOG_ERROR, "node 0 did not come within %d s (--rdzv-conf=timeout=...): %s",
                 dial->timeout, ct_last_error());
        dial->hooks->gave_up(dial->arg, "node 0 did not come");
        return;
    }
    pause = (struct timeval){ dial->pause_ms / 1000, dial->pause_ms % 1000 * 1000 };
    dial->pause_ms = dial->pause_ms < 500 ? 2 * dial->pause_ms : 1000;
    event_add(&dial->again, &pause);
}

void dial_setup(struct dial *dial, struct event_base *base, const struct rendezvous *meet,
                int timeout, const struct dial_hooks *hooks, void *arg)
{
    *dial = (struct dial){ .meet = meet, .timeout = timeout, .hooks = hooks, .arg = arg };
    evtimer_assign(&dial->again, base, try_to_connect, dial);
}

void dial_start(struct dial *dial)
{
    dial->since = clock_ms();
    dial->speak = FIRST_WORD_MS;
    dial->pause_ms = 10;
    event_active(&dial->again, EV_TIMEOUT, 0);
}

void dial_stop(struct dial *dial)
{
    event_del(&dial->again);
}
