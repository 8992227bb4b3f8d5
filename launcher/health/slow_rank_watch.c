/* SPDX-License-Identifier: Apache-2.0 */
/* slow_rank_watch.c - which ranks are in a collective, looked at now and then.
 *
 * A rank that comes last into each collective hardly waits there, and the other ranks wait for it:
 * so it is in collectives for a small part of the time, and they for a large one.  Messages do not
 * count, since a server waits for its clients all the time.  A rank that is slow in two windows one
 * after the other is reported, once in a round. */
#include "launcher/health/slow_rank_watch.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/types/call_signature.h"
#include "runtime/util/log.h"

#define LOOKS 100         /* in a window */
#define LONGEST_US 250000 /* between two looks */
#define SHORTEST_US 5000
#define LEAST_CALLS 5  /* in a window; a rank that makes none is reported as a stall */
#define LEAST_APART 20 /* per cent of the time, and */
#define TIMES_APART 3  /* so many times the share */

static int per_cent(int part, int of)
{
    return of > 0 ? (200 * part + of) / (2 * of) : 0;
}

int slow_rank_of(const struct rank_share *share, int size, int looks)
{
    int least = 0, others = looks;

    for (int i = 1; i < size; i++)
        if (share[i].inside < share[least].inside)
            least = i;
    for (int i = 0; i < size; i++)
        if (i != least && share[i].inside < others)
            others = share[i].inside;
    return size > 1 && share[least].calls >= LEAST_CALLS
                   && per_cent(others - share[least].inside, looks) >= LEAST_APART
                   && others >= TIMES_APART * share[least].inside
               ? least
               : -1;
}

/* ---- The page ---------------------------------------------------------------------- */

static int is_inside(const struct control_group *line)
{
    const int operation = __atomic_load_n(&line->now.operation, __ATOMIC_RELAXED);

    return atomic_load_explicit(&line->id, memory_order_relaxed) != 0
           && __atomic_load_n(&line->now.phase, __ATOMIC_RELAXED) == CONTROL_IN
           && !operation_is_message(operation);
}

static uint64_t begun_by(const struct control_rank *page)
{
    uint64_t begun = 0;

    for (int i = 0; i < CONTROL_GROUPS; i++)
        begun += atomic_load_explicit(&page->groups[i].begun, memory_order_relaxed);
    return begun;
}

static void begin_window(struct slow_ranks *slow)
{
    slow->looks = 0;
    for (int i = 0; i < slow->size; i++) {
        const struct control_rank *page = control_rank_at(slow->control->head, i);

        slow->share[i] = (struct rank_share){ .calls_before = begun_by(page) };
    }
}

/* ---- Windows ------------------------------------------------------------------------- */

static void report(struct slow_ranks *slow, int slowest)
{
    int least = slow->looks, most = 0;
    char text[300], range[32];

    for (int i = 0; i < slow->size; i++)
        if (i != slowest) {
            least = slow->share[i].inside < least ? slow->share[i].inside : least;
            most = slow->share[i].inside > most ? slow->share[i].inside : most;
        }
    snprintf(range, sizeof range, least == most ? "%d" : "%d to %d", per_cent(least, slow->looks),
             per_cent(most, slow->looks));
    snprintf(text, sizeof text,
             "rank %d makes the others wait: for %d s it has been in collectives for %d %% of the "
             "time, and %s for %s %%",
             control_rank_at(slow->control->head, slowest)->rank, slow->seconds,
             per_cent(slow->share[slowest].inside, slow->looks),
             slow->size == 2 ? "the other one" : "each other rank of this host", range);
    slow->reported = slowest;
    slow->found(slow->arg, text);
}

static void end_window(struct slow_ranks *slow)
{
    int slowest;

    for (int i = 0; i < slow->size; i++)
        slow->share[i].calls =
            begun_by(control_rank_at(slow->control->head, i)) - slow->share[i].calls_before;
    slowest = slow_rank_of(slow->share, slow->size, slow->looks);
    if (slowest >= 0 && slowest == slow->suspect && slowest != slow->reported)
        report(slow, slowest);
    slow->suspect = slowest;
    begin_window(slow);
}

static void set_timer(struct slow_ranks *slow)
{
    int64_t us = (int64_t)slow->seconds * 1000000 / (2 * LOOKS);

    us = us > LONGEST_US ? LONGEST_US : us < SHORTEST_US ? SHORTEST_US : us;
    event_add(&slow->timer, &(struct timeval){ 0, us });
}

static int looks_of_window(const struct slow_ranks *slow)
{
    const int64_t looks = (int64_t)slow->seconds * 1000000 / (2 * LONGEST_US);

    return looks > LOOKS ? (int)looks : LOOKS;
}

static void look(evutil_socket_t fd, short what, void *arg)
{
    struct slow_ranks *slow = arg;

    (void)fd;
    (void)what;
    for (int i = 0; i < slow->size; i++) {
        const struct control_rank *page = control_rank_at(slow->control->head, i);

        for (int line = 0; line < CONTROL_GROUPS; line++)
            if (is_inside(&page->groups[line])) {
                slow->share[i].inside++;
                break;
            }
    }
    if (++slow->looks >= looks_of_window(slow))
        end_window(slow);
    set_timer(slow);
}

void slow_ranks_setup(struct slow_ranks *slow, struct event_base *base, int seconds,
                      const struct control_host *control,
                      void (*found)(void *arg, const char *text), void *arg)
{
    *slow =
        (struct slow_ranks){ .control = control, .seconds = seconds, .found = found, .arg = arg };
    evtimer_assign(&slow->timer, base, look, slow);
}

void slow_ranks_begin(struct slow_ranks *slow, int size)
{
    slow_ranks_end(slow);
    if (slow->seconds <= 0 || size < 2 || !slow->control->head)
        return;
    slow->share = calloc((size_t)size, sizeof *slow->share);
    if (!slow->share) {
        log_line(LOG_WARN, "out of memory: slow ranks among %d are not watched", size);
        return;
    }
    slow->size = size;
    slow->suspect = slow->reported = -1;
    begin_window(slow);
    set_timer(slow);
}

void slow_ranks_end(struct slow_ranks *slow)
{
    event_del(&slow->timer);
    free(slow->share);
    slow->share = NULL;
    slow->size = 0;
}
