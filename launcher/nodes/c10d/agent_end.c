/* SPDX-License-Identifier: Apache-2.0 */
/* agent_end.c - what follows when our workers have ended: another round, the others'
 * end, or ours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/nodes/c10d/agent_internal.h"
#include "launcher/nodes/c10d/round_keys.h"
#include "launcher/report/report.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/signal_name.h"

/* Of a round: there once the workers of all its nodes have ended well. */
static const char last_member[] = "torchelastic/agent/terminal_state/last_member";

/* We were told to stop.  The others may go on, but not without the rendezvous. */
static void bow_out(struct c10d_agent *a)
{
    const int number = c10d_orders_now(a).signalled;
    char name[32], what[128];

    signal_name(number, name, sizeof name);
    snprintf(what, sizeof what, "the ctrun that hosts the rendezvous was told to stop by %s", name);
    if (a->config.hosts && a->round >= 0)
        c10d_tell_failure(a, a->session.state.round, /* the others may gather for it already */
                          &(struct failure){ -1, 128 + number, 0, what, 1 });
    if (a->round >= 0)
        c10d_say(a, "stopped"); /* or the others would wait for it */
    if (a->config.hosts)
        c10d_close_job(&a->session);
    else
        c10d_leave_job(&a->session);
    c10d_post_over(a, 128 + number, "");
}

/* -1: as long as the others live.  torchrun's 300 s would end the job if we host it, and with
 * it the workers of a node that has more to do than we had, such as to write a checkpoint. */
static int64_t barrier_deadline(void)
{
    const char *text = getenv("TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT");
    int seconds;

    return text && value_int(text, &seconds) == 0 && seconds >= 0
               ? clock_ms() + seconds * INT64_C(1000)
               : -1;
}

static int64_t count_ended(struct c10d_agent *a, int delta)
{
    int64_t count = 0;
    char key[400];

    c10d_key(&a->session, a->session.state.round, "torchelastic/agent/terminal_state/num_members",
             key, sizeof key);
    return ct_store_add(a->session.store, key, delta, &count) == CT_OK ? count : -1;
}

enum barrier { WAITING, ALL_ENDED, ENOUGH, ANEW, SAID /* that it is over */ };

/* What do the others do, while we wait for their workers? */
static enum barrier look_around(struct c10d_agent *a)
{
    struct c10d_session *s = &a->session;
    struct failure failure;
    char text[NODE_TEXT];

    if (c10d_pulse(s) != C10D_DONE) {
        /* torchrun's host goes when it has seen the end, ctrun's when all have. */
        if (!a->host_is_ctrun)
            return ALL_ENDED;
        c10d_post_over(a, 1, s->why);
        return SAID;
    }
    if (c10d_orders_now(a).signalled) {
        bow_out(a);
        return SAID;
    }
    if (c10d_failure_of(a, text, sizeof text, &failure) == 0 && s->state.closed) {
        c10d_post_over(a, failure.code, failure.what);
        return SAID;
    }
    if (s->state.closed)
        return ALL_ENDED;
    if (c10d_count(&s->state, C10D_WAITING) == 0 && !c10d_missing_node(a))
        return WAITING;
    /* If all have, who should have said so, the last one, was lost meanwhile. */
    return count_ended(a, 0) < (int64_t)s->world.count ? ANEW : ALL_ENDED;
}

/* Until the workers of all nodes have ended well.  1: the job begins anew. */
static int exit_barrier(struct c10d_agent *a)
{
    struct c10d_session *s = &a->session;
    const int64_t deadline = barrier_deadline();
    enum barrier now = WAITING;
    char key[400];

    c10d_say(a, "ended");
    c10d_key(s, s->state.round, last_member, key, sizeof key);
    if (count_ended(a, 1) >= (int64_t)s->world.count)
        ct_store_set(s->store, key, "<val_ignored>", strlen("<val_ignored>"));
    for (int ms = 1; now == WAITING; ms = ms < 200 ? 2 * ms : 250) {
        char *all = c10d_peek(s, s->state.round, last_member);

        if (all || c10d_rest(a, ms))
            now = ALL_ENDED;
        else
            now = look_around(a);
        free(all);
        if (now == WAITING && deadline >= 0 && clock_ms() >= deadline)
            now = a->config.hosts ? ALL_ENDED : ENOUGH;
    }
    if (now == ENOUGH) {
        c10d_leave_job(s);
        c10d_post_over(a, 0, "");
    }
    if (now == ALL_ENDED) {
        c10d_close_job(s);
        c10d_post_over(a, 0, "");
    }
    return now == ANEW;
}

/* When all ctruns of the round have said what they know, the first failure is settled; who is
 * silent is known to be lost by then. */
static enum c10d_end await_others(struct c10d_agent *a)
{
    const struct options *options = a->config.options;
    const struct rdzv_conf *conf = &options->rdzv_conf;
    const int64_t silence = (int64_t)conf->keep_alive_interval * conf->keep_alive_max_attempt;
    const int64_t grace = options->shutdown_timeout + INT64_C(5);
    const int64_t deadline = clock_ms() + 1000 * (silence + 2 > grace ? silence + 2 : grace);
    enum c10d_end end = C10D_DONE;

    c10d_changed(a);
    for (int ms = 1; end == C10D_DONE && c10d_others_stop(a) && clock_ms() < deadline;
         ms = ms < 200 ? 2 * ms : 250) {
        if (c10d_rest(a, ms) || c10d_orders_now(a).signalled)
            break;
        end = c10d_pulse(&a->session);
    }
    /* Without the store no node seems to be there that has to stop. */
    return end == C10D_DONE ? c10d_look(&a->session) : end;
}

static int is_ours(const struct failure *failure, const struct orders *orders)
{
    return orders->failure.code && orders->failure.rank == failure->rank
           && orders->failure.code == failure->code;
}

/* The round has failed, with `first` as far as was known before the others had stopped.  1: the
 * next one. */
static int settle_failure(struct c10d_agent *a, const struct orders *orders,
                          const struct failure *first)
{
    const struct c10d_node *lost;
    struct failure failure;
    char text[NODE_TEXT], why[NODE_TEXT];
    int ours;

    if (c10d_failure_of(a, text, sizeof text, &failure) < 0)
        failure = *first;
    ours = is_ours(&failure, orders);
    snprintf(why, sizeof why, "%.900s", ours ? "" : failure.what);
    if (!failure.is_cause && (lost = c10d_lost_node(a))) {
        /* What exited may have missed that node.  A lost node is no failure of the job: it goes on
         * with those that are left, or with another one. */
        failure.may_restart = 1;
        ours = 0;
        snprintf(why, sizeof why, "node %s (pid %lld) was lost", lost->addr, (long long)lost->pid);
    }
    if (failure.may_restart) {
        c10d_post_verdict(a, why);
        if (ours)
            a->restarted++;
        else if (orders->failure.code && a->again)
            restarts_give_back(&a->restarts);
        return 1;
    }
    if (orders->failure.code && c10d_close_job(&a->session) != C10D_DONE)
        log_line(LOG_WARN, "the others could not be told that the job is over: %s", a->session.why);
    c10d_post_over(a, failure.code, why);
    return 0;
}

/* The round has failed, and the store is gone.  A ctrun that hosts it stays until the others know
 * the end, so its loss goes before an exit; torchrun's host leaves at once. */
static void end_without_store(struct c10d_agent *a, const struct orders *orders,
                              const struct failure *first)
{
    if (a->host_is_ctrun) {
        c10d_post_over(a, 1, a->session.why);
        return;
    }
    log_line(LOG_WARN, "%s", a->session.why);
    c10d_post_over(a, first->code, is_ours(first, orders) ? "" : first->what);
}

/* 1: the next round. */
int c10d_after_round(struct c10d_agent *a, enum c10d_end how)
{
    struct orders orders = c10d_orders_now(a);
    struct failure first;
    char text[NODE_TEXT];
    const int told = how != C10D_LOST && c10d_failure_of(a, text, sizeof text, &first) == 0;
    const int failed = told || orders.failure.code;

    if (!told) {
        first = orders.failure;
        first.may_restart = a->again;
    }
    if (how != C10D_LOST && !orders.quit && !orders.signalled && (failed || how != C10D_DONE)) {
        c10d_say(a, "stopped");
        if (failed && await_others(a) == C10D_LOST)
            how = C10D_LOST;
    }
    orders.signalled = c10d_orders_now(a).signalled;
    if (orders.signalled) {
        bow_out(a);
        return 0;
    }
    if (how == C10D_LOST && failed && !orders.quit) {
        end_without_store(a, &orders, &first);
        return 0;
    }
    if (how == C10D_LOST || orders.quit) {
        c10d_post_over(a, 1, a->session.why);
        return 0;
    }
    if (how == C10D_DONE && !orders.failure.code)
        return exit_barrier(a);
    return failed ? settle_failure(a, &orders, &first)
                  : 1; /* and if the job is closed, that is said there */
}

/* The job is closed: it has ended as its last round did, also if this node was cut off from that.
 * What ended it may be told under our round, which is over since all have left it by now. */
static void end_as_the_others(struct c10d_agent *a)
{
    const int64_t ours = a->round, last = a->session.state.round;
    const int missed = ours >= 0 && last > ours;
    char *all_ended = ours >= 0 ? c10d_peek(&a->session, last, last_member) : NULL;
    struct failure failure;
    char text[NODE_TEXT];
    int told;

    a->round = missed ? last : ours;
    told = c10d_failure_of(a, text, sizeof text, &failure) == 0;
    if (missed && !told && !all_ended) {
        a->round = ours;
        told = c10d_failure_of(a, text, sizeof text, &failure) == 0;
    }
    if (told)
        c10d_post_over(a, failure.code, failure.what);
    else if (all_ended)
        c10d_post_over(a, 0, missed ? "this node was cut off" : "");
    else
        c10d_post_over(a, 1, a->session.why);
    free(all_ended);
}

/* There is no next round: why? */
void c10d_end_outside(struct c10d_agent *a, enum c10d_end end)
{
    if (end == C10D_STOPPED) {
        bow_out(a);
        return;
    }
    if (end == C10D_CLOSED) {
        end_as_the_others(a);
        return;
    }
    if (end == C10D_SPARED)
        log_line(LOG_WARN, "%s", a->session.why);
    if (end == C10D_LATE)
        c10d_leave_job(&a->session);
    c10d_post_over(a, end == C10D_SPARED ? 0 : 1, end == C10D_SPARED ? "" : a->session.why);
}
