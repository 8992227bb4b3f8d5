/* SPDX-License-Identifier: Apache-2.0 */
/* collective_shares.h - how much of the time this host's ranks are in collectives: by the control
 * page, into which it looks some hundred times within half the time of --stall, a window.  Nothing
 * is counted in the ranks.  Messages do not count, since a server waits for its clients all the
 * time.  What follows from it: launcher/nodes/slow_rank.h. */
#ifndef LAUNCHER_HEALTH_COLLECTIVE_SHARES_H
#define LAUNCHER_HEALTH_COLLECTIVE_SHARES_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "launcher/health/control_page_host.h"
#include "launcher/nodes/slow_rank.h"

struct rank_share {
    int inside;            /* in how many looks it was in a collective */
    uint64_t calls;        /* collectives that it began meanwhile */
    uint64_t calls_before; /* and before */
};

struct share_watch {
    struct event timer;
    const struct control_host *control;
    int seconds;              /* of two windows; 0: it is off */
    int first_rank, size;     /* of the round's workers here */
    int looks;                /* in this window */
    struct rank_share *share; /* [size] */
    void (*counted)(void *arg, const struct collective_shares *shares);
    void *arg;
};

void share_watch_setup(struct share_watch *watch, struct event_base *base, int seconds,
                       const struct control_host *control,
                       void (*counted)(void *arg, const struct collective_shares *shares),
                       void *arg);
/* A round: its workers here. */
void share_watch_begin(struct share_watch *watch, int first_rank, int size);
void share_watch_end(struct share_watch *watch);

/* Below: for tests. */

struct collective_shares shares_of(const struct rank_share *share, int size, int looks,
                                   int first_rank);

#endif
