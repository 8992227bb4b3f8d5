/* SPDX-License-Identifier: Apache-2.0 */
/* timer_watchdog.h - torchrun's file timers: a worker that does not finish a step in time is
 * killed. */
#ifndef LAUNCHER_HEALTH_TIMER_WATCHDOG_H
#define LAUNCHER_HEALTH_TIMER_WATCHDOG_H

#include <event2/event_struct.h>
#include <limits.h>

#include "launcher/health/timer_request.h"
#include "launcher/workers/worker.h"

struct watchdog {
    char path[256]; /* of the FIFO; "": none */
    int fd;
    struct event readable, expiry;
    struct timer_request *timers;
    int count, room;
    char line[PIPE_BUF + 1]; /* what came of it so far */
    size_t used;
    int too_long, complained;
    struct worker *workers;
    int size;
};

/* With TORCHELASTIC_ENABLE_FILE_TIMER=1, makes the FIFO and sets TORCHELASTIC_TIMER_FILE for the
 * workers.  0, or the exit code and the sentence is said.  watchdog_close() is owed. */
int watchdog_open(struct watchdog *watchdog, struct worker *workers, int size);

void watchdog_watch(struct watchdog *watchdog, struct event_base *base);

/* The round is over: its timers are nobody's. */
void watchdog_clear(struct watchdog *watchdog);
void watchdog_close(struct watchdog *watchdog);

#endif
