/* SPDX-License-Identifier: Apache-2.0 */
/* agent_end.c - what follows when our workers have ended: another round, the others'
 * end, or ours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/c10d/agent_state.h"
#include "launcher/c10d/round_keys.h"
#include "launcher/report.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/signal_name.h"

/* We were told to stop.  The others may go on, but not without the rendezvous. */
static void bow_out(struct c10d_agent *a)
{
    const int number = c10d_orders_now(a).signalled;
    char name[32], what[128];

    signal_name(number, name, sizeof name);
    snprintf(what, sizeof what, "the ctrun that hosts the rendezvous was told to stop by %s", name);
    if (a->config.hosts && a->round >= 0)
        c10d_tell_failure(a, &(struct failure){ -1, 128 + number, 0, what });
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

static void tell_ended(struct c10d_agent *a)
{
    char name[40], key[400];

    snprintf(name, sizeof name, "ct/ended/%d", c10d_my_rank(&a->session));
    c10d_key(&a->session, a->round, name, key, sizeof key);
    ct_store_set(a->session.store, key, "1", 1);
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
    static const char last[] = "torchelastic/agent/terminal_state/last_member";
    struct c10d_session *s = &a->session;
    const int64_t deadline = barrier_deadline();
    enum barrier now = WAITING;
    char key[400];

    tell_ended(a);
    c10d_key(s, s->state.round, last, key, sizeof key);
    if (count_ended(a, 1) >= (int64_t)s->world.count)
        ct_store_set(s->store, key, "<val_ignored>", strlen("<val_ignored>"));
    for (int ms = 1; now == WAITING; ms = ms < 200 ? 2 * ms : 250) {
        char *all = c10d_peek(s, s->state.round, last);

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

/* 1: the next round. */
int c10d_after_round(struct c10d_agent *a, enum c10d_end how)
{
    const struct orders orders = c10d_orders_now(a);
    struct failure failure;
    char text[NODE_TEXT];

    if (orders.signalled) {
        bow_out(a);
        return 0;
    }
    if (how == C10D_LOST || orders.quit) {
        c10d_post_over(a, orders.failure.code ? orders.failure.code : 1, a->session.why);
        return 0;
    }
    if (orders.failure.code && !a->again) {
        if (c10d_close_job(&a->session) != C10D_DONE)
            log_line(LOG_WARN, "the others could not be told that the job is over: %s",
                     a->session.why);
        c10d_post_over(a, orders.failure.code, "");
        return 0;
    }
    if (orders.failure.code) {
        a->restarted++;
        return 1;
    }
    if (how == C10D_DONE)
        return exit_barrier(a);
    if (c10d_failure_of(a, text, sizeof text, &failure) == 0 && !failure.may_restart) {
        c10d_post_over(a, failure.code, failure.what);
        return 0;
    }
    return 1; /* and if the job is closed, that is said there */
}

/* There is no next round: why? */
void c10d_end_outside(struct c10d_agent *a, enum c10d_end end)
{
    struct failure failure;
    char text[NODE_TEXT];

    if (end == C10D_STOPPED) {
        bow_out(a);
        return;
    }
    if (end == C10D_CLOSED && c10d_failure_of(a, text, sizeof text, &failure) == 0) {
        c10d_post_over(a, failure.code, failure.what);
        return;
    }
    if (end == C10D_SPARED)
        log_line(LOG_WARN, "%s", a->session.why);
    if (end == C10D_LATE)
        c10d_leave_job(&a->session);
    c10d_post_over(a, end == C10D_SPARED ? 0 : 1, end == C10D_SPARED ? "" : a->session.why);
}
