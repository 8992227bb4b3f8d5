/* SPDX-License-Identifier: Apache-2.0 */
/* init_watch.h - names the ranks that the others wait for in ct_init_process_group(). */
#ifndef LAUNCHER_HEALTH_INIT_WATCH_H
#define LAUNCHER_HEALTH_INIT_WATCH_H

#include <event2/event_struct.h>

#include "launcher/nodes/job_rendezvous.h"
#include "launcher/workers/worker.h"

struct init_watch {
    struct event tick;
    const struct job_rendezvous *meet;
    const struct worker *workers;
    int size;
    int quiet;     /* checks since the last connection to the store */
    int64_t first; /* when an arrival was first seen; 0: none yet */
    int64_t say;   /* when to speak next */
};

void init_watch_setup(struct init_watch *watch, struct event_base *base,
                      const struct job_rendezvous *meet, const struct worker *workers, int size);
void init_watch_start(struct init_watch *watch); /* of a round */
void init_watch_stop(struct init_watch *watch);

#endif
