/* SPDX-License-Identifier: Apache-2.0 */
/* stall_observer.h - --stall: reports which ranks wait, and for which, once a rank has waited for
 * that long, and which process was stopped all the time.  For a job that moves this costs two
 * checks in that time: of ctrun's own control page, and of the state of processes that do not use
 * libct. */
#ifndef LAUNCHER_OBSERVERS_STALL_OBSERVER_H
#define LAUNCHER_OBSERVERS_STALL_OBSERVER_H

#include <event2/event_struct.h>
#include <stdint.h>

struct job;

/* Here for its test. */
struct stall {
    struct job *job;
    struct event timer;
    int seconds;         /* 0: it is off */
    uint64_t reported;   /* the key of the last report; 0: none in this round */
    uint64_t again_ns;   /* wait after which the same is reported again */
    uint64_t stopped_ns; /* since when a process without libct is stopped; 0: none is */
    uint64_t traced_ns;  /* since when a debugger holds one; likewise */
};

#endif
