/* SPDX-License-Identifier: Apache-2.0 */
/* monitored_barrier.c - ct_monitored_barrier(), a barrier that names the missing ranks.
 *
 * Each rank reports to rank 0.  Rank 0 receives the reports one after the other, and then sends to
 * all ranks.  At the timeout rank 0 names the ranks that did not report, and the group fails with
 * this message on all ranks.  The other ranks wait a little longer than rank 0, since otherwise the
 * first rank that came would give up first.
 * Cost: 2 alpha, and p-1 messages each way through rank 0. */
#include <stdio.h>
#include <string.h>

#include "collectives/core/sendrecv.h"
#include "runtime/messaging/messages.h"

#define NAMED 8 /* the most missing ranks that the message names */
/* The other ranks wait this many ms longer than rank 0, so that rank 0's message arrives.  If the
 * limit is shorter than this, they wait twice the limit. */
#define GRACE_MS 1000

struct missing {
    int count;
    char names[512];
    int first; /* the first missing rank, as a rank of the mesh */
};

static void add_missing(struct missing *missing, const struct call *c, int rank)
{
    const size_t used = strlen(missing->names);
    char name[160];

    if (missing->count == 0)
        missing->first = c->group->ranks[rank];
    if (++missing->count > NAMED)
        return;
    mesh_peer_name(c->group->mesh, c->group->ranks[rank], name, sizeof name);
    snprintf(missing->names + used, sizeof missing->names - used, "%s%s", used ? ", " : "", name);
}

static ct_status say_missing(const struct missing *missing)
{
    char more[32] = "";

    if (missing->count > NAMED)
        snprintf(more, sizeof more, " and %d more", missing->count - NAMED);
    return ct_fail_because((struct blame){ missing->first, BLAME_LATE }, CT_ERR_TIMEOUT,
                           "%s%s did not join", missing->names, more);
}

static ct_status monitored_barrier_collect(struct call *c)
{
    struct missing missing = { 0 };
    ct_status status = CT_OK;

    for (int i = 1; i < c->group->size && (status == CT_OK || c->wait_all); i++) {
        status = recv_from(c, i, span_of(NULL, 0));
        if (status == CT_ERR_TIMEOUT)
            add_missing(&missing, c, i);
        else if (status != CT_OK)
            return status;
    }
    if (missing.count > 0)
        return say_missing(&missing);
    messages_look(c->group->mesh);
    if (atomic_load(
            &c->group->failure.status)) /* the ranks reported, then gave up waiting for this rank */
        return ct_fail(CT_ERR_ABORTED, "the group is broken");
    for (int i = 1; i < c->group->size && status == CT_OK; i++)
        status = send_to(c, i, span_of(NULL, 0));
    return status;
}

static ct_status monitored_barrier_report(struct call *c)
{
    ct_status status;

    c->deadline += c->limit.ms < GRACE_MS ? c->limit.ms : GRACE_MS;
    status = send_to(c, 0, span_of(NULL, 0));
    return status == CT_OK ? recv_from(c, 0, span_of(NULL, 0)) : status;
}

static ct_status monitored_barrier_run(struct call *c)
{
    return c->group->rank == 0 ? monitored_barrier_collect(c) : monitored_barrier_report(c);
}

static const struct algorithm monitored_barrier_messages = { .name = "messages",
                                                             .run = monitored_barrier_run };

const struct algorithm *const monitored_barrier_algorithms[] = { &monitored_barrier_messages,
                                                                 NULL };

ct_status ct_monitored_barrier(ct_group *group, int timeout_ms, int wait_all)
{
    const struct request_of_call request = {
        .group = group,
        .caller = __builtin_return_address(0),
        .operation = OPERATION_MONITORED_BARRIER,
        .algorithms = monitored_barrier_algorithms,
        .op = NONE,
        .root = NONE,
        .limit = { timeout_ms < 0 ? 0 : timeout_ms, "ct_monitored_barrier()" },
        .wait_all = wait_all,
    };

    if (timeout_ms == 0)
        return ct_fail(CT_ERR_INVALID, "monitored_barrier: the timeout is 0 ms; it must be "
                                       "positive, or negative to use the group's");
    return call_run(&request, NULL);
}
