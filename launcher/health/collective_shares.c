/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/health/collective_shares.h"

#include <event2/event.h>
#include <limits.h>
#include <stdlib.h>

#include "runtime/types/call_signature.h"
#include "runtime/util/log.h"

#define LOOKS 100         /* in a window */
#define LONGEST_US 250000 /* between two looks */
#define SHORTEST_US 5000

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

static int is_inside(const struct control_group *line)
{
    return control_is_in_call(line)
           && !operation_is_message(__atomic_load_n(&line->now.operation, __ATOMIC_RELAXED));
}

static uint64_t begun_by(const struct control_rank *page)
{
    uint64_t begun = 0;

    for (int i = 0; i < CONTROL_GROUPS; i++)
        begun += atomic_load_explicit(&page->groups[i].begun, memory_order_relaxed);
    return begun;
}

static void begin_window(struct share_watch *watch)
{
    watch->looks = 0;
    for (int i = 0; i < watch->size; i++) {
        const struct control_rank *page = control_rank_at(watch->control->head, i);

        watch->share[i] = (struct rank_share){ .calls_before = begun_by(page) };
    }
}

/* ---- Windows ------------------------------------------------------------------------- */

static void end_window(struct share_watch *watch)
{
    struct collective_shares shares;

    for (int i = 0; i < watch->size; i++)
        watch->share[i].calls =
            begun_by(control_rank_at(watch->control->head, i)) - watch->share[i].calls_before;
    shares = shares_of(watch->share, watch->size, watch->looks, watch->first_rank);
    begin_window(watch);
    watch->counted(watch->arg, &shares);
}

static void shares_set_timer(struct share_watch *watch)
{
    int64_t us = (int64_t)watch->seconds * 1000000 / (2 * LOOKS);

    us = us > LONGEST_US ? LONGEST_US : us < SHORTEST_US ? SHORTEST_US : us;
    event_add(&watch->timer, &(struct timeval){ 0, us });
}

static int looks_of_window(const struct share_watch *watch)
{
    const int64_t looks = (int64_t)watch->seconds * 1000000 / (2 * LONGEST_US);

    return looks > LOOKS ? (int)looks : LOOKS;
}

static void shares_look(evutil_socket_t fd, short what, void *arg)
{
    struct share_watch *watch = arg;

    (void)fd;
    (void)what;
    for (int i = 0; i < watch->size; i++) {
        const struct control_rank *page = control_rank_at(watch->control->head, i);

        for (int line = 0; line < CONTROL_GROUPS; line++)
            if (is_inside(&page->groups[line])) {
                watch->share[i].inside++;
                break;
            }
    }
    shares_set_timer(watch);
    if (++watch->looks >= looks_of_window(watch))
        end_window(watch); /* last: it may end the watch */
}

void share_watch_setup(struct share_watch *watch, struct event_base *base, int seconds,
                       const struct control_host *control,
                       void (*counted)(void *arg, const struct collective_shares *shares),
                       void *arg)
{
    *watch = (struct share_watch){
        .control = control, .seconds = seconds, .counted = counted, .arg = arg
    };
    evtimer_assign(&watch->timer, base, shares_look, watch);
}

void share_watch_begin(struct share_watch *watch, int first_rank, int size)
{
    share_watch_end(watch);
    if (watch->seconds <= 0 || size < 1 || !watch->control->head)
        return;
    watch->share = calloc((size_t)size, sizeof *watch->share);
    if (!watch->share) {
        log_line(LOG_WARN, "out of memory: a slow rank among the %d here is not noticed", size);
        return;
    }
    watch->first_rank = first_rank;
    watch->size = size;
    begin_window(watch);
    shares_set_timer(watch);
}

void share_watch_end(struct share_watch *watch)
{
    event_del(&watch->timer);
    free(watch->share);
    watch->share = NULL;
    watch->size = 0;
}
