/* SPDX-License-Identifier: Apache-2.0 */
/* agent_round.c - a round: ranks are exchanged, the workers run, and the others are watched.
 *
 * "ct/failed" of the round holds the first failure, as "rank code flags what" (node_messages.h):
 * other ctruns stop at once.  A death by signal takes the place of an exit, and each ctrun
 * says by "ct/stopped/<node>" that its workers are gone and that it has told what they died of.
 * When all have, "ct/failed" says what follows and with which code the job ends (agent_end.c).
 * torchrun's agents don't know these keys, nor set "ct/here/<node>" when they begin; they see that
 * we wait for the next round, or that the job is closed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/nodes/c10d/agent_internal.h"
#include "launcher/nodes/c10d/round_keys.h"
#include "launcher/nodes/node_messages.h"
#include "runtime/util/clock.h"

/* What the first failure of our last round was, if it was told: 0, and text holds it. */
int c10d_failure_of(struct c10d_agent *a, char *text, size_t size, struct failure *failure)
{
    char *value = a->round < 0 ? NULL : c10d_peek(&a->session, a->round, "ct/failed");
    int status = -1;

    if (value) {
        node_text(text, size, value, strlen(value));
        status = node_failure(text, failure);
    }
    free(value);
    return status;
}

/* 1: it is there now, or what is there cannot be a failure and so not be replaced. */
static int offer_failure(struct c10d_agent *a, const char *key, const char *text, char *there,
                         size_t size)
{
    void *now;
    size_t now_size;

    if (ct_store_compare_set(a->session.store, key, there, strlen(there), text, strlen(text), &now,
                             &now_size)
        != CT_OK)
        return 1;
    snprintf(there, size, "%.*s", (int)now_size, (const char *)now);
    free(now);
    return strlen(there) != now_size /* too long, or with a NUL */ || !strcmp(there, text);
}

void c10d_tell_failure(struct c10d_agent *a, int64_t round, const struct failure *f)
{
    char key[400], text[NODE_TEXT], there[NODE_TEXT] = "";
    struct failure first = { .is_cause = 0 };

    c10d_key(&a->session, round, "ct/failed", key, sizeof key);
    node_failure_print(f, text);
    while (!offer_failure(a, key, text, there, sizeof there))
        if (!f->is_cause || node_failure(there, &first) < 0 || first.is_cause)
            break;
    c10d_changed(a);
}

/* At once, while our workers are still being stopped: the others can stop theirs. */
static void decide_and_tell(struct c10d_agent *a, struct failure failure)
{
    a->again = failure.may_restart && restarts_take(&a->restarts, clock_ms());
    failure.may_restart = a->again;
    c10d_tell_failure(a, a->round, &failure);
}

/* A ctrun says three things of its round: "here", when it begins; "ended", when its workers have
 * ended well, so that their part is done and it may leave; "stopped", when they are gone for any
 * other cause. */
static int has_said(struct c10d_agent *a, const char *what, size_t rank)
{
    char name[40], *value;

    snprintf(name, sizeof name, "ct/%s/%zu", what, rank);
    value = c10d_peek(&a->session, a->round, name);
    free(value);
    return value != NULL;
}

void c10d_say(struct c10d_agent *a, const char *what)
{
    char name[40], key[400];

    snprintf(name, sizeof name, "ct/%s/%d", what, c10d_my_rank(&a->session));
    c10d_key(&a->session, a->round, name, key, sizeof key);
    ct_store_set(a->session.store, key, "1", 1);
}

int c10d_others_stop(struct c10d_agent *a)
{
    const struct c10d_session *s = &a->session;

    for (size_t i = 0; i < s->world.count && s->state.round == a->round; i++)
        if ((int)i != c10d_my_rank(s) && c10d_is(&s->state, &s->world.nodes[i], C10D_PARTICIPANT)
            && has_said(a, "here", i) && !has_said(a, "stopped", i) && !has_said(a, "ended", i))
            return 1;
    return 0;
}

const struct c10d_node *c10d_lost_node(struct c10d_agent *a)
{
    const struct c10d_session *s = &a->session;

    for (size_t i = 0; i < s->world.count && s->state.round == a->round; i++)
        if (!c10d_is(&s->state, &s->world.nodes[i], C10D_PARTICIPANT) && has_said(a, "here", i)
            && !has_said(a, "stopped", i) && !has_said(a, "ended", i))
            return &s->world.nodes[i];
    return NULL;
}

/* A node of our round that is gone, and was needed; NULL: there is none. */
const struct c10d_node *c10d_missing_node(struct c10d_agent *a)
{
    const struct c10d_session *s = &a->session;

    for (size_t i = 0; i < s->world.count; i++)
        if (!c10d_is(&s->state, &s->world.nodes[i], C10D_PARTICIPANT) && !has_said(a, "ended", i))
            return &s->world.nodes[i];
    return NULL;
}

/* NULL: nothing has happened to the others that ends this round. */
static const char *what_happened(struct c10d_agent *a, char *text, size_t size)
{
    struct c10d_session *s = &a->session;
    const struct c10d_node *missing;
    struct failure failure;

    if (c10d_failure_of(a, text, size, &failure) == 0)
        return failure.what;
    if (s->state.closed)
        return "another node has ended the job";
    if ((missing = c10d_missing_node(a))) {
        snprintf(text, size, "node %s (pid %lld) has left the job", missing->addr,
                 (long long)missing->pid);
        return text;
    }
    if (c10d_count(&s->state, C10D_WAITING) > 0)
        return "a node has come";
    return NULL;
}

static int wait_for_store(struct c10d_agent *a)
{
    int port;

    pthread_mutex_lock(&a->lock);
    a->orders.port = 0;
    a->news.store_wanted = 1;
    c10d_news_is_there(a);
    while (!a->orders.port && !a->orders.quit)
        c10d_wait_to_be_told(a, 1000);
    port = a->orders.port;
    pthread_mutex_unlock(&a->lock);
    return port;
}

enum c10d_end c10d_exchange(struct c10d_agent *a)
{
    const struct options *options = a->config.options;
    const char *identical = getenv("TORCH_ELASTIC_WORKER_IDENTICAL");
    struct c10d_offer offer = { .role = options->role,
                                .workers = a->config.size,
                                .identical = identical && !strcmp(identical, "1"),
                                .address = a->address,
                                .generation = a->orders.generation,
                                .timeout = options->rdzv_conf.read_timeout * SECOND_US };

    enum c10d_end end;

    if (c10d_my_rank(&a->session) == 0 && (offer.port = wait_for_store(a)) == 0)
        return C10D_STOPPED;
    end = c10d_assign(&a->session, &offer, &a->assignment);
    /* For programs here that come there without the secret, as PyTorch's do. */
    if (end == C10D_DONE && a->config.secret->size > 0 && c10d_my_rank(&a->session) != 0
        && a->assignment.by_ctrun)
        c10d_open_link(a, a->assignment.address, a->assignment.port, &a->news.store_link);
    return end;
}

void c10d_post_round(struct c10d_agent *a)
{
    const struct c10d_assignment *got = &a->assignment;

    pthread_mutex_lock(&a->lock);
    a->orders.ended = 0;
    a->orders.failure.code = 0;
    a->news.stop = 0; /* not heard yet: it was for the round before */
    a->news.round = 1;
    a->news.plan = (struct plan){ .base = got->base,
                                  .world = got->world,
                                  .role_base = got->role_base,
                                  .role_world = got->role_world,
                                  .node = c10d_my_rank(&a->session),
                                  .nodes = (int)a->session.world.count,
                                  .restarts = a->restarted,
                                  .generation = got->generation,
                                  .address = got->address,
                                  .port = got->port };
    pthread_mutex_unlock(&a->lock);
    c10d_news_is_there(a);
}

/* Until our workers have ended.  Returns how: C10D_DONE as they wanted, C10D_CHANGED since
 * we stopped them, C10D_LOST without a store. */
enum c10d_end c10d_watch_round(struct c10d_agent *a)
{
    enum c10d_end how = C10D_DONE;
    int told = 0;

    for (;;) {
        const struct orders orders = c10d_orders_now(a);
        char text[NODE_TEXT];
        const char *why;

        if (how != C10D_LOST && orders.failure.code && !told++)
            decide_and_tell(a, orders.failure);
        if (orders.ended || orders.quit)
            return how;
        if (how != C10D_LOST && c10d_pulse(&a->session) == C10D_LOST) {
            how = C10D_LOST;
            c10d_post_stop(a, a->session.why, 1);
        }
        if (how == C10D_DONE && !orders.failure.code && !orders.signalled
            && (why = what_happened(a, text, sizeof text))) {
            how = C10D_CHANGED;
            c10d_post_stop(a, why, 0);
        }
        c10d_rest(a, how == C10D_DONE ? 1000 : 100);
    }
}
