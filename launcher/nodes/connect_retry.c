/* SPDX-License-Identifier: Apache-2.0 */
/* connect_retry.c - tries again and again, at pauses that grow from 10 ms to a second.
 *
 * Each attempt is made by the event loop itself, which has little else to do: there are no workers
 * before the nodes have met. */
#include "launcher/nodes/connect_retry.h"

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
    struct connect_retry *retry = arg;
    const int64_t waited = clock_ms() - retry->since;
    struct timeval pause;
    int fd;
    ct_status status = rendezvous_look_up(retry->meet);

    (void)ignored;
    (void)what;
    if (status == CT_OK)
        status = node_link_connect(&retry->meet->policy.secret, retry->meet->address,
                                   retry->meet->port, deadline_after(ATTEMPT_MS), &fd);
    if (status == CT_OK) {
        retry->hooks->connected(retry->arg, fd);
        return;
    }
    if (status == CT_ERR_INVALID || status == CT_ERR_UNSUPPORTED) {
        log_line(LOG_ERROR, "%s", ct_last_error());
        retry->hooks->gave_up(retry->arg, "");
        return;
    }
    if (waited >= retry->speak) {
        log_line(LOG_WARN, "waiting %d s for node 0: %s", (int)(waited / 1000), ct_last_error());
        retry->speak += NEXT_WORD_MS;
    }
    if (waited >= retry->timeout * INT64_C(1000)) {
        log_line(LOG_ERROR, "node 0 did not come within %d s (%s): %s", retry->timeout,
                 retry->limit, ct_last_error());
        retry->hooks->gave_up(retry->arg, "node 0 did not come");
        return;
    }
    pause = (struct timeval){ retry->pause_ms / 1000, retry->pause_ms % 1000 * 1000 };
    retry->pause_ms = retry->pause_ms < 500 ? 2 * retry->pause_ms : 1000;
    event_add(&retry->again, &pause);
}

void connect_retry_setup(struct connect_retry *retry, struct event_base *base,
                         struct rendezvous *meet, const struct connect_retry_hooks *hooks,
                         void *arg)
{
    *retry = (struct connect_retry){ .meet = meet, .hooks = hooks, .arg = arg };
    evtimer_assign(&retry->again, base, try_to_connect, retry);
}

void connect_retry_start(struct connect_retry *retry, int timeout, const char *limit)
{
    retry->timeout = timeout;
    retry->limit = limit;
    retry->since = clock_ms();
    retry->speak = FIRST_WORD_MS;
    retry->pause_ms = 10;
    event_active(&retry->again, EV_TIMEOUT, 0);
}

void connect_retry_stop(struct connect_retry *retry)
{
    event_del(&retry->again);
}
