/* SPDX-License-Identifier: Apache-2.0 */
/* init_watch.h - says who keeps the others waiting in ct_init_process_group(). */
#ifndef LAUNCHER_HEALTH_INIT_WATCH_H
#define LAUNCHER_HEALTH_INIT_WATCH_H

#include <event2/event_struct.h>

#include "launcher/nodes/store_host.h"
#include "launcher/workers/worker.h"

struct arrivals {
    struct event tick;
    const struct rendezvous *meet;
    const struct worker *workers;
    int size;
    int quiet;     /* looks since somebody last came to the store */
    int64_t first; /* when an arrival was first seen; 0: none yet */
    int64_t say;   /* when to speak next */
};

void arrivals_setup(struct arrivals *arrivals, struct event_base *base,
                    const struct rendezvous *meet, const struct worker *workers, int size);
void arrivals_start(struct arrivals *arrivals); /* of a round */
void arrivals_stop(struct arrivals *arrivals);

#endif
