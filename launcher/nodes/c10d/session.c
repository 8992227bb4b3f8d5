/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - reads the state, asks the rules, offers what follows.
 *
 * An offer that lost against another's is no failure: the answer is the other's
 * state, and the rules are asked again.  The store is looked at often at first and
 * less and less often; whoever waits for long says for whom.
 *
 * PyTorch's agents wait for the whole last call even when everybody is back from the
 * round before; here the first to see that completes the round. */
#include "launcher/nodes/c10d/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define LOOK_EVERY_US 1000000
#define FIRST_WORD_US 5000000
#define NEXT_WORD_US 30000000
/* Between leaving and coming back an agent is nowhere for a moment. */
#define ALL_BACK_US 100000

static struct c10d_now now_is(void)
{
    struct timespec utc;

    clock_gettime(CLOCK_REALTIME, &utc);
    return (struct c10d_now){ (int64_t)utc.tv_sec * 1000000 + utc.tv_nsec / 1000, clock_us() };
}

static enum c10d_end end_with(struct c10d_session *s, enum c10d_end end, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum c10d_end end_with(struct c10d_session *s, enum c10d_end end, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(s->why, sizeof s->why, format, args);
    va_end(args);
    return end;
}

static enum c10d_end store_lost(struct c10d_session *s)
{
    return end_with(s, C10D_LOST, "the rendezvous at %s was lost: %.250s", s->place,
                    ct_last_error());
}

static enum c10d_end no_memory(struct c10d_session *s)
{
    return end_with(s, C10D_LOST, "out of memory for the state of the rendezvous");
}

/* ---- The state in the store --------------------------------------------------- */

/* Takes over text. */
static enum c10d_end adopt(struct c10d_session *s, char *text, size_t size)
{
    const struct c10d_node *dead;
    struct why why;

    free(s->text);
    s->text = text;
    s->size = size;
    s->looked = clock_us();
    if (c10d_state_read(&s->state, text, size, &why) < 0)
        return end_with(s, C10D_LOST, "what lies at %s under the name of this job is no state: %s",
                        s->place, why.text);
    if (c10d_drop_dead(&s->state, &s->watch, &s->me, s->looked, &s->settings) < 0)
        return no_memory(s);
    while ((dead = c10d_next_dead(&s->watch)))
        log_line(LOG_WARN, "node %s (pid %lld) has given no sign of life for %lld s: taken out",
                 dead->addr, (long long)dead->pid,
                 (long long)(s->settings.keep_alive_interval * s->settings.keep_alive_max_attempt
                             / 1000000));
    return C10D_DONE;
}

static enum c10d_end swap(struct c10d_session *s, const char *expected, size_t expected_size,
                          const char *desired, size_t size)
{
    void *answer;
    size_t answer_size;

    if (ct_store_compare_set(s->store, s->key, expected, expected_size, desired, size, &answer,
                             &answer_size)
        != CT_OK)
        return store_lost(s);
    return adopt(s, answer, answer_size);
}

enum c10d_end c10d_look(struct c10d_session *s)
{
    void *text;
    size_t size;

    if (!s->text)
        return swap(s, "", 0, C10D_NO_STATE, strlen(C10D_NO_STATE));
    if (ct_store_get(s->store, s->key, -1, &text, &size) != CT_OK)
        return store_lost(s);
    return adopt(s, text, size);
}

/* Our copy of the state for the store's, if nobody was faster. */
static enum c10d_end offer(struct c10d_session *s)
{
    size_t size;
    char *text = c10d_state_write(&s->state, &size);
    enum c10d_end end;

    if (!text)
        return no_memory(s);
    end = swap(s, s->text, s->size, text, size);
    free(text);
    return end;
}

/* What makes others stop their workers, who look at the store once a second only. */
static int is_news(enum c10d_action action)
{
    return action == C10D_JOIN_WAIT_LIST || action == C10D_LEAVE || action == C10D_CLOSE;
}

static enum c10d_end carry_out(struct c10d_session *s, enum c10d_action action)
{
    const int news = is_news(action) && s->state.complete;
    enum c10d_end end;

    if (c10d_apply(&s->state, action, &s->me, now_is(), &s->settings, &s->world) < 0)
        return no_memory(s);
    end = offer(s);
    if (news)
        s->changed(s->arg);
    return end;
}

/* ---- In ------------------------------------------------------------------------ */

/* Nobody is left to wait for: who was in the round before is in this one, or gone. */
static int all_are_back(const struct c10d_session *s)
{
    if (s->world.count == 0 || s->state.complete || !c10d_is(&s->state, &s->me, C10D_PARTICIPANT)
        || c10d_count(&s->state, C10D_PARTICIPANT) < s->settings.min
        || c10d_count(&s->state, C10D_WAITING) > 0)
        return 0;
    for (size_t i = 0; i < s->world.count; i++)
        if (c10d_find(&s->state, &s->world.nodes[i])
            && !c10d_is(&s->state, &s->world.nodes[i], C10D_PARTICIPANT))
            return 0;
    return 1;
}

static void say_who_is_there(const struct c10d_session *s, int64_t waited_us)
{
    const size_t there = c10d_count(&s->state, C10D_PARTICIPANT);
    const int64_t left = s->state.deadline - now_is().utc;
    char names[256] = "", last_call[96] = "";
    size_t used = 0;

    if (there >= s->settings.min && s->state.has_deadline)
        snprintf(last_call, sizeof last_call,
                 "; it begins in %lld s unless more come (--rdzv-conf=last_call_timeout)",
                 (long long)(left > 0 ? (left + 999999) / 1000000 : 0));

    for (size_t i = 0; i < s->state.count && used < sizeof names - 80; i++)
        if (s->state.members[i].roles & C10D_PARTICIPANT)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%.60s", used ? ", " : "",
                                     s->state.members[i].node.addr);
    if (c10d_is(&s->state, &s->me, C10D_SPARE))
        log_line(LOG_WARN, "waiting %lld s as a spare: all %zu places at %s are taken",
                 (long long)(waited_us / 1000000), s->settings.max, s->place);
    else if (c10d_is(&s->state, &s->me, C10D_WAITING))
        log_line(LOG_WARN, "waiting %lld s for the %zu nodes at %s to begin again with us",
                 (long long)(waited_us / 1000000), there, s->place);
    else
        log_line(LOG_WARN, "waiting %lld s: %zu nodes are at %s (%s), %zu to %zu make the job%s",
                 (long long)(waited_us / 1000000), there, s->place, names, s->settings.min,
                 s->settings.max, last_call);
}

/* there: how many there were; who gives up has taken itself out by now. */
static enum c10d_end give_up(struct c10d_session *s, enum c10d_action action, size_t there)
{
    if (action == C10D_QUIT)
        return end_with(s, C10D_SPARED, "the job at %s is over; this node was a spare", s->place);
    if (action == C10D_CLOSED_ERROR)
        return end_with(s, C10D_CLOSED,
                        "RendezvousClosedError: the job at %s is over; a new one needs another "
                        "--rdzv-id",
                        s->place);
    return end_with(s, C10D_LATE,
                    "RendezvousTimeoutError: %zu of at least %zu nodes came to %s within %lld s "
                    "(--rdzv-conf=join_timeout=...)",
                    there, s->settings.min, s->place, (long long)(s->join_timeout / 1000000));
}

/* One step; C10D_SLEEP as an answer to "what now?" is for the caller. */
static enum c10d_end step(struct c10d_session *s, enum c10d_action action, int64_t *deadline)
{
    if (action == C10D_LEAVE_SPARES)
        *deadline = clock_us() + s->join_timeout;
    return carry_out(s, action);
}

static enum c10d_end join(struct c10d_session *s)
{
    const int64_t start = clock_us();
    int64_t deadline = start + s->join_timeout, back_since = 0, speak = FIRST_WORD_US;
    enum c10d_end end = c10d_look(s);
    size_t there = 0;

    while (end == C10D_DONE) {
        const struct c10d_now now = now_is();
        const int64_t waited = now.monotonic - start;
        enum c10d_action action = c10d_decide_join(&s->state, &s->me, now, deadline, &s->settings);

        if (now.monotonic <= deadline)
            there = c10d_count(&s->state, C10D_PARTICIPANT);
        back_since = !all_are_back(s) ? 0 : back_since ? back_since : now.monotonic;
        if (action == C10D_SLEEP && back_since && now.monotonic >= back_since + ALL_BACK_US)
            action = C10D_COMPLETE;
        if (action == C10D_FINISH)
            return c10d_ranks_take(&s->world, &s->state) < 0 ? no_memory(s) : C10D_DONE;
        if (action == C10D_CLOSED_ERROR || action == C10D_TIMEOUT_ERROR || action == C10D_QUIT)
            return give_up(s, action, there);
        if (action != C10D_SLEEP) {
            end = step(s, action, &deadline);
            continue;
        }
        if (waited >= speak) {
            say_who_is_there(s, waited);
            speak = waited + NEXT_WORD_US;
        }
        if (s->rest(s->arg, waited < 4900000 ? 5 + (int)(waited / 20000) : 250))
            return C10D_STOPPED;
        end = c10d_look(s);
    }
    return end;
}

/* ---- Out ----------------------------------------------------------------------- */

/* Asks `decide` and does it until there is nothing left to do. */
static enum c10d_end settle(struct c10d_session *s, int64_t timeout,
                            enum c10d_action (*decide)(const struct c10d_session *s,
                                                       int64_t deadline))
{
    const int64_t deadline = clock_us() + timeout;
    enum c10d_end end = s->text ? C10D_DONE : c10d_look(s);

    while (end == C10D_DONE) {
        const enum c10d_action action = decide(s, deadline);

        if (action == C10D_FINISH)
            return C10D_DONE;
        if (action == C10D_TIMEOUT_ERROR)
            return give_up(s, action, c10d_count(&s->state, C10D_PARTICIPANT));
        end = carry_out(s, action);
    }
    return end;
}

static enum c10d_action decide_leave(const struct c10d_session *s, int64_t deadline)
{
    return c10d_decide_leave(&s->state, &s->me, now_is(), deadline);
}

static enum c10d_action decide_close(const struct c10d_session *s, int64_t deadline)
{
    return c10d_decide_close(&s->state, now_is(), deadline);
}

/* From whatever list we are on. */
static enum c10d_action decide_away(const struct c10d_session *s, int64_t deadline)
{
    if (c10d_is(&s->state, &s->me, C10D_WAITING))
        return C10D_LEAVE_WAIT_LIST;
    if (c10d_is(&s->state, &s->me, C10D_SPARE))
        return C10D_LEAVE_SPARES;
    return decide_leave(s, deadline);
}

enum c10d_end c10d_next_round(struct c10d_session *s)
{
    const enum c10d_end end = settle(s, s->join_timeout, decide_leave);

    return end == C10D_DONE ? join(s) : end;
}

enum c10d_end c10d_leave_job(struct c10d_session *s)
{
    return settle(s, s->close_timeout, decide_away);
}

enum c10d_end c10d_close_job(struct c10d_session *s)
{
    return settle(s, s->close_timeout, decide_close);
}

/* ---- Meanwhile ------------------------------------------------------------------ */

static enum c10d_action decide_beat(const struct c10d_session *s, int64_t deadline)
{
    return c10d_decide_keep_alive(&s->state, &s->me, now_is(), deadline, &s->settings);
}

/* An offer that lost is made again at once, and not with the next look: then another
 * node's heartbeat is in between again, and its rhythm would have us declared dead. */
enum c10d_end c10d_pulse(struct c10d_session *s)
{
    enum c10d_end end;

    if (clock_us() - s->looked < LOOK_EVERY_US
        && !c10d_keep_alive_due(&s->state, &s->me, now_is(), &s->settings))
        return C10D_DONE;
    end = c10d_look(s);
    if (end == C10D_DONE)
        end = settle(s, s->heartbeat_timeout, decide_beat);
    return end == C10D_LATE ? C10D_DONE : end; /* others are faster for once */
}

enum c10d_end c10d_take_out(struct c10d_session *s, const struct c10d_node *node)
{
    const unsigned all = C10D_PARTICIPANT | C10D_WAITING | C10D_SPARE;
    enum c10d_end end = c10d_look(s);

    if (end != C10D_DONE || s->state.closed || !c10d_is(&s->state, node, all))
        return end; /* it has left in good order, or all are about to */
    log_line(LOG_WARN, "node %s (pid %lld) was lost: its ctrun ended", node->addr,
             (long long)node->pid);
    while (end == C10D_DONE && c10d_is(&s->state, node, all)) {
        c10d_remove(&s->state, node, all, &s->settings);
        end = offer(s);
    }
    s->changed(s->arg);
    return end;
}

int c10d_world_stands(const struct c10d_session *s)
{
    for (size_t i = 0; i < s->world.count; i++)
        if (!c10d_is(&s->state, &s->world.nodes[i], C10D_PARTICIPANT))
            return 0;
    return 1;
}

int c10d_my_rank(const struct c10d_session *s)
{
    for (size_t i = 0; i < s->world.count; i++)
        if (c10d_node_compare(&s->world.nodes[i], &s->me) == 0)
            return (int)i;
    return -1;
}

void c10d_session_init(struct c10d_session *s, ct_store *store, const char *place,
                       const char *run_id)
{
    *s = (struct c10d_session){ .store = store, .place = place };
    snprintf(s->key, sizeof s->key, "torch.rendezvous.%s", run_id);
}

void c10d_session_free(struct c10d_session *s)
{
    c10d_state_free(&s->state);
    c10d_watch_free(&s->watch);
    c10d_ranks_free(&s->world);
    free(s->text);
    s->text = NULL;
}
