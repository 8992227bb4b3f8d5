/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_observer.c - finds a rank that makes the others wait (--stall).
 *
 * A timer on each node samples whether the node's ranks are in collectives.  If an observer shows
 * the calls of a rank, each sample is its answer to a question (ask.h).  The coordinator compares
 * the nodes (launcher/nodes/slow_rank.c) and calls the hook slow(), which logs a rank. */
#include "launcher/observers/straggler_observer.h"

#include <event2/event.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "launcher/inspect/ask.h"
#include "launcher/job/job.h"
#include "launcher/observers/observers.h"
#include "runtime/types/call_signature.h"
#include "runtime/util/log.h"

#define LOOKS 100         /* samples in a window; more if they would be over LONGEST_US apart */
#define LONGEST_US 250000 /* most time between two samples */
#define SHORTEST_US 5000  /* least time between two samples */
/* If observers answer, the samples are so many times farther apart, and a window is as much longer:
 * an answer takes a rank up to 15 ms, and fewer samples would find stragglers by chance. */
#define OBSERVED_SPACING 8

/* What count_sample() knows of a rank. */
struct rank_watch {
    uint64_t calls_before; /* collectives that the rank began before the window */
    uint64_t begun;        /* collectives that it had begun at the last sample inside */
    int same;              /* samples in a row that found it in the same collective */
    int is_inside;         /* 1 if the last sample found it in a collective */
};

struct share_watch {
    struct job *job;
    struct event timer;
    int seconds;              /* length of two windows; 0 if the observer is off */
    int first_rank, size;     /* first rank and number of ranks of this node */
    int spacing;              /* OBSERVED_SPACING if observers answer, else 1 */
    int looks;                /* samples taken in this window */
    struct rank_share *share; /* share[i] and rank[i] belong to rank first_rank + i */
    struct rank_watch *rank;
};

static int per_cent(int part, int of)
{
    return of > 0 ? (200 * part + of) / (2 * of) : 0;
}

struct collective_shares shares_of(const struct rank_share *share, int size, int looks,
                                   int first_rank)
{
    struct collective_shares shares = { .next = 100 };
    int least = 0;

    for (int i = 1; i < size; i++)
        if (share[i].inside < share[least].inside)
            least = i;
    shares.rank = first_rank + least;
    shares.least = per_cent(share[least].inside, looks);
    shares.calls = share[least].calls < INT_MAX ? (int)share[least].calls : INT_MAX;
    for (int i = 0; i < size; i++) {
        const int part = per_cent(share[i].inside, looks);

        if (i != least && part < shares.next)
            shares.next = part;
        if (i != least && part > shares.most)
            shares.most = part;
    }
    return shares;
}

/* ---- The control page ---------------------------------------------------------------------- */

static int is_observed(const struct control_group *line)
{
    return atomic_load_explicit(&line->id, memory_order_relaxed) != 0
           && __atomic_load_n(&line->caller, __ATOMIC_RELAXED) == CONTROL_OBSERVED;
}

static int is_inside(const struct control_rank *page)
{
    for (int i = 0; i < CONTROL_GROUPS; i++) {
        const struct control_group *const line = &page->groups[i];

        if (control_is_in_call(line)
            && !operation_is_message(__atomic_load_n(&line->now.operation, __ATOMIC_RELAXED)))
            return 1;
    }
    return 0;
}

static int has_observed_group(const struct control_rank *page)
{
    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (is_observed(&page->groups[i]))
            return 1;
    return 0;
}

static uint64_t begun_by(const struct control_rank *page)
{
    uint64_t begun = 0;

    for (int i = 0; i < CONTROL_GROUPS; i++)
        begun += atomic_load_explicit(&page->groups[i].begun, memory_order_relaxed);
    return begun;
}

/* ---- Windows ------------------------------------------------------------------------- */

static int looks_of_window(const struct share_watch *watch)
{
    const int64_t looks = (int64_t)watch->seconds * 1000000 / (2 * LONGEST_US);

    return looks > LOOKS ? (int)looks : LOOKS;
}

static void begin_window(struct share_watch *watch)
{
    watch->looks = 0;
    for (int i = 0; i < watch->size; i++) {
        watch->share[i].inside = 0;
        watch->rank[i].calls_before = begun_by(control_rank_at(watch->job->control.head, i));
    }
}

/* Counts a sample of a rank.  The samples in one call count for at most a tenth of a window: the
 * others wait long for a rank that is away once, for example to evaluate, but it is not slow. */
static void count_sample(struct share_watch *watch, int i, const struct control_rank *page,
                         uint32_t asked)
{
    const uint64_t begun = begun_by(page);
    struct rank_watch *rank = &watch->rank[i];

    /* an observer that is late, for example since threads of its process compete for Python's lock,
     * counts as at the sample before */
    if (!has_observed_group(page) || atomic_load(&page->answered) == asked)
        rank->is_inside = is_inside(page);
    if (!rank->is_inside)
        return;
    rank->same = begun == rank->begun ? rank->same + 1 : 1;
    rank->begun = begun;
    watch->share[i].inside += rank->same <= (looks_of_window(watch) + 9) / 10;
}

static void end_window(struct share_watch *watch)
{
    struct collective_shares shares;

    for (int i = 0; i < watch->size; i++)
        watch->share[i].calls =
            begun_by(control_rank_at(watch->job->control.head, i)) - watch->rank[i].calls_before;
    shares = shares_of(watch->share, watch->size, watch->looks, watch->first_rank);
    begin_window(watch);
    watch->job->nodes->ops->shares(watch->job->nodes, &shares);
}

static void shares_set_timer(struct share_watch *watch)
{
    int64_t us = (int64_t)watch->seconds * 1000000 / (2 * LOOKS);

    us = us > LONGEST_US ? LONGEST_US : us < SHORTEST_US ? SHORTEST_US : us;
    us *= watch->spacing;
    event_add(&watch->timer, &(struct timeval){ us / 1000000, us % 1000000 });
}

static void shares_look(evutil_socket_t fd, short what, void *arg)
{
    struct share_watch *watch = arg;
    int spacing = 1;
    uint32_t asked;

    (void)fd;
    (void)what;
    if (!job_moves(watch->job))
        return;
    asked = atomic_load(&watch->job->control.head->asked);
    for (int i = 0; i < watch->size; i++) {
        const struct control_rank *page = control_rank_at(watch->job->control.head, i);

        count_sample(watch, i, page, asked);
        if (has_observed_group(page))
            spacing = OBSERVED_SPACING;
    }
    if (spacing > 1)
        ask_observers(watch->job->control.memory);
    if (spacing != watch->spacing) {
        watch->spacing = spacing;
        begin_window(watch);
    } else if (++watch->looks >= looks_of_window(watch)) {
        end_window(watch);
    }
    shares_set_timer(watch);
}

static int shares_job_began(void *state, struct job *job)
{
    struct share_watch *watch = state;

    watch->job = job;
    watch->seconds = job->options->stall;
    evtimer_assign(&watch->timer, job->base, shares_look, watch);
    return 0;
}

static void shares_free(struct share_watch *watch)
{
    free(watch->share);
    free(watch->rank);
    watch->share = NULL;
    watch->rank = NULL;
}

static void shares_round_began(void *state, struct job *job)
{
    struct share_watch *watch = state;

    event_del(&watch->timer);
    if (watch->seconds <= 0 || job->plan.world < 2 || !job->control.head)
        return;
    shares_free(watch);
    watch->share = calloc((size_t)job->size, sizeof *watch->share);
    watch->rank = calloc((size_t)job->size, sizeof *watch->rank);
    if (!watch->share || !watch->rank) {
        log_line(LOG_WARN, "out of memory: a slow rank among the %d here is not noticed",
                 job->size);
        return;
    }
    watch->first_rank = job->plan.base;
    watch->size = job->size;
    watch->spacing = 1;
    begin_window(watch);
    shares_set_timer(watch);
}

static void shares_close(void *state, const struct job_end *end)
{
    (void)end;
    shares_free(state);
}

int shares_seconds(const struct job *job)
{
    for (int i = 0; job->control.head && i < job->size; i++)
        if (has_observed_group(control_rank_at(job->control.head, i)))
            return OBSERVED_SPACING * job->options->stall;
    return job->options->stall;
}

static void shares_slow(void *state, const struct slow_rank *slow, const char *node)
{
    const struct job *job = ((struct share_watch *)state)->job;
    const int seconds = shares_seconds(job);
    const char *const others = job->plan.world == 2 ? "the other rank" : "each other rank";
    char range[32];

    snprintf(range, sizeof range, slow->others_least == slow->others_most ? "%d" : "%d to %d",
             slow->others_least, slow->others_most);
    if (slow->rank >= 0)
        log_line(
            LOG_WARN,
            "rank %d makes the others wait (a straggler): in the last %d s it spent %d %% of the "
            "time in collectives, %s %s %%",
            slow->rank, seconds, slow->share, others, range);
    else
        log_line(LOG_WARN,
                 "the ranks of %s make the others wait (stragglers): in the last %d s each of them "
                 "spent at most %d %% of the time in collectives, %s %s %%",
                 node, seconds, slow->share, others, range);
}

const struct job_observer straggler_observer = { .bytes = sizeof(struct share_watch),
                                                 .job_began = shares_job_began,
                                                 .close = shares_close,
                                                 .round_began = shares_round_began,
                                                 .slow = shares_slow };
