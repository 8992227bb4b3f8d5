/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - node 0 waits until all nodes of a static job are there.
 *
 * Each joins with what it was told about the job.  Two that were told different things don't belong
 * together: the one that came is refused, with the difference, and we wait on.  When the last is
 * there the first round begins.  Who is missing is said meanwhile; after
 * --rdzv-conf=timeout the job is over. */
#include "launcher/nodes/fixed/join.h"

#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define FIRST_WORD_MS 5000
#define NEXT_WORD_MS 30000

/* ---- Who comes -------------------------------------------------------------- */

static void start_when_all_are_there(struct host *h)
{
    for (int i = 0; i < h->count; i++)
        if (!h->members[i].joined)
            return;
    event_del(&h->tick);
    rounds_begin(h);
}

static void refuse(struct store_agent *agent, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void refuse(struct store_agent *agent, const char *format, ...)
{
    char text[NODE_TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_line(LOG_WARN, "a node was refused: %s", text);
    store_agent_send(agent, NODE_REFUSED, text, strlen(text));
}

void gather_join(struct host *h, struct store_agent *agent, const char *text)
{
    struct node_join join;

    if (node_join_read(text, &join) < 0) {
        refuse(agent, "its words are not understood (\"%.60s\"); is it another version?", text);
        return;
    }
    if (strcmp(join.version, CT_VERSION) != 0)
        refuse(agent, "node %d has ctrun %s, node 0 has %s", join.node, join.version, CT_VERSION);
    else if (strcmp(join.job, h->meet->run_id) != 0)
        refuse(agent, "node %d has --rdzv-id=%.200s, node 0 has --rdzv-id=%.200s", join.node,
               join.job, h->meet->run_id);
    else if (join.nodes != h->count)
        refuse(agent, "node %d has --nnodes=%d, node 0 has --nnodes=%d", join.node, join.nodes,
               h->count);
    else if (join.node < 1 || join.node >= h->count)
        refuse(agent, "--node-rank=%d: with --nnodes=%d the others are nodes 1 to %d", join.node,
               h->count, h->count - 1);
    else if (h->members[join.node].joined)
        refuse(agent, "there is a node with --node-rank=%d already", join.node);
    else if (rounds_world(h) > WORLD_MOST - join.workers)
        refuse(agent, "with its %d workers the job would have more than %d", join.workers,
               WORLD_MOST);
    else if (h->phase != GATHERING)
        refuse(agent, "the job runs without node %d", join.node);
    else {
        struct member *member = &h->members[join.node];

        *member = (struct member){
            .joined = 1, .workers = join.workers, .agent = agent, .heard = clock_ms()
        };
        snprintf(member->role, sizeof member->role, "%s", join.role);
        snprintf(member->host, sizeof member->host, "%s", join.host);
        h->nodes.hooks->member(h->nodes.job, join.node, 1);
        start_when_all_are_there(h);
    }
}

/* ---- Who is missing? -------------------------------------------------------- */

static int there(const struct host *h)
{
    int count = 0;

    for (int i = 0; i < h->count; i++)
        count += h->members[i].joined;
    return count;
}

static void say_who_is_missing(const struct host *h, int64_t waited_ms)
{
    char missing[256] = "";
    size_t used = 0;

    for (int i = 0; i < h->count; i++)
        if (!h->members[i].joined && used < sizeof missing - 16)
            used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%d",
                                     used ? ", " : "", i);
    if (*h->meet->elsewhere)
        log_line(
            LOG_WARN,
            "waiting %d s: %d/%d nodes are here, at %s port %d; missing --node-rank %s; %s is no "
            "address of this host: is --node-rank=0 right?",
            (int)(waited_ms / 1000), there(h), h->count, h->meet->elsewhere, h->meet->port, missing,
            h->meet->address);
    else
        log_line(LOG_WARN, "waiting %d s: %d/%d nodes are at %s port %d; missing --node-rank %s",
                 (int)(waited_ms / 1000), there(h), h->count, h->meet->address, h->meet->port,
                 missing);
}

void gather_tick(struct host *h)
{
    const struct timeval second = { 1, 0 };
    const int64_t waited = clock_ms() - h->since;

    if (waited >= h->speak) {
        say_who_is_missing(h, waited);
        h->speak += NEXT_WORD_MS;
    }
    if (waited < h->options->rdzv_conf.timeout * INT64_C(1000)) {
        event_add(&h->tick, &second);
        return;
    }
    h->code = 1;
    snprintf(
        h->why, sizeof h->why,
        "Timed out after %d seconds waiting for clients. %d/%d clients joined: node 0 waited at "
        "%s port %d (--rdzv-conf=timeout=...)",
        h->options->rdzv_conf.timeout, there(h), h->count, h->meet->address, h->meet->port);
    log_line(LOG_ERROR, "%s", h->why);
    rounds_end_job(h);
}

void gather_start(struct host *h)
{
    const struct timeval second = { 1, 0 };

    h->since = clock_ms();
    h->speak = FIRST_WORD_MS;
    event_add(&h->tick, &second);
    start_when_all_are_there(h);
}
