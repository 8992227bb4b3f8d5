/* SPDX-License-Identifier: Apache-2.0 */
/* slow_rank_watch.h - says when one rank makes the others wait again and again: a slow disk or
 * processor, or more work than the others have.  Of this host's ranks, by the control page: some
 * hundred times within the time of --stall it looks which ranks are in a collective.  Nothing is
 * counted in the ranks. */
#ifndef LAUNCHER_HEALTH_SLOW_RANK_WATCH_H
#define LAUNCHER_HEALTH_SLOW_RANK_WATCH_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "launcher/health/control_page_host.h"

struct rank_share {
    int inside;            /* in how many looks it was in a collective */
    uint64_t calls;        /* collectives that it began meanwhile */
    uint64_t calls_before; /* and before */
};

struct slow_ranks {
    struct event timer;
    const struct control_host *control;
    int seconds;              /* of two windows; 0: it is off */
    int size;                 /* of the round's workers here */
    int looks;                /* in this window */
    struct rank_share *share; /* [size] */
    int suspect;              /* that of the last window; -1: there was none */
    int reported;             /* -1: none in this round */
    void (*found)(void *arg, const char *text);
    void *arg;
};

void slow_ranks_setup(struct slow_ranks *slow, struct event_base *base, int seconds,
                      const struct control_host *control,
                      void (*found)(void *arg, const char *text), void *arg);
void slow_ranks_begin(struct slow_ranks *slow, int size); /* a round */
void slow_ranks_end(struct slow_ranks *slow);

/* The one that the others wait for, or -1: it is in collectives for much less of the time than each
 * of the others is, and made several of them. */
int slow_rank_of(const struct rank_share *share, int size, int looks);

#endif
