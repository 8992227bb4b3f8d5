/* SPDX-License-Identifier: Apache-2.0 */
/* liveness.c - checks that the other ranks are alive while this rank waits for a device.  To do so
 * it posts a receive from each other rank. */
#include "collectives/device/group/liveness.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/messaging/death_notice.h"
#include "runtime/util/clock.h"

/* No message with a collective's data has this tag.  If no rank waits for the message, it stays in
 * the group until the group ends.  A rank sends it at most once, since a rank that gave up never
 * joins again. */
enum { WATCH_TAG = 1 };

/* A rank that has finished its part may exit while this rank waits.  Then the call must end within
 * GRACE_MS. */
enum { GRACE_MS = 500, CAUSE_MS = 300, NAP_MS = 2 };

static void liveness_post(struct watch *w)
{
    struct call *c = w->call;
    const ct_group *g = c->group;
    struct request *request;

    w->requests = calloc((size_t)g->size, sizeof *w->requests);
    request = w->requests; /* NULL if memory ran out; then only the deadline ends the wait */
    for (int i = 1; i < g->size && w->requests; i++)
        request_recv(g->mesh, request++, group_channel(g, 0), g->ranks[(g->rank + i) % g->size],
                     WATCH_TAG, NULL, 0, &c->signature);
}

/* Checks all messages that arrived.  Each call polls whether one rank is alive, in turn. */
ct_status watch_check(struct watch *w)
{
    ct_group *g = w->call->group;
    const int others = g->size - 1;
    const struct request *gone = NULL;

    if (!w->requests)
        liveness_post(w);
    if (w->requests && others > 0)
        request_poll(g->mesh, &w->requests[w->next++ % others]);
    group_look_for_failure(g);
    for (int i = 0; i < others && w->requests; i++) {
        const struct request *r = &w->requests[i];

        if (!atomic_load(&r->done))
            continue;
        if (r->status == CT_OK)
            return ct_fail(CT_ERR_UNSUPPORTED, "rank %d gave up", r->peer);
        if (!gone)
            gone = r;
    }
    if (gone && w->gone_ms == 0)
        w->gone_ms = clock_ms();
    return gone && clock_ms() - w->gone_ms >= GRACE_MS ? ct_fail(gone->status, "%s", gone->reason)
                                                       : CT_OK;
}

ct_status watch_for_cause(struct watch *w, ct_status status)
{
    const struct timespec nap = { 0, NAP_MS * 1000000L };
    const int64_t deadline = deadline_after(CAUSE_MS);
    const ct_group *g = w->call->group;
    char words[400];

    snprintf(words, sizeof words, "%s", ct_last_error());
    do {
        if (watch_check(w) == CT_ERR_UNSUPPORTED || atomic_load(&g->failure.reported))
            break;
        for (int i = 0; i < g->size - 1 && w->requests; i++)
            if (atomic_load(&w->requests[i].done))
                return ct_fail(w->requests[i].status, "%s; %s", w->requests[i].reason, words);
        nanosleep(&nap, NULL);
    } while (clock_ms() < deadline);
    return ct_fail(status, "%s", words);
}

void watch_end(struct watch *w)
{
    for (int i = 0; i < w->call->group->size - 1 && w->requests; i++)
        request_cancel(w->call->group->mesh, &w->requests[i]);
    free(w->requests);
    w->requests = NULL;
}

void watch_send_give_up(struct call *c)
{
    const ct_group *g = c->group;

    for (int i = 1; i < g->size; i++) {
        struct request request;

        request_send(g->mesh, &request, group_channel(g, 0), g->ranks[(g->rank + i) % g->size],
                     WATCH_TAG, NULL, 0, &c->signature);
        request_wait(g->mesh, &request, c->deadline, &g->failure.status);
    }
}
