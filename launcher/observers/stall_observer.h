/* SPDX-License-Identifier: Apache-2.0 */
/* stall_observer.h - when a rank has waited for --stall, reports which ranks wait for which, and
 * which process was stopped all the time.  While a job moves, this costs two checks within --stall:
 * of ctrun's own control page, and of the state of processes that do not use libct. */
#ifndef LAUNCHER_OBSERVERS_STALL_OBSERVER_H
#define LAUNCHER_OBSERVERS_STALL_OBSERVER_H

#include <event2/event_struct.h>
#include <stdint.h>

struct job;

/* In this header only for its test. */
struct stall {
    struct job *job;
    struct event timer;
    int seconds;         /* 0: it is off */
    uint64_t reported;   /* key of the last report; 0: no report in this round */
    uint64_t again_ns;   /* wait after which the same is reported again */
    uint64_t stopped_ns; /* since when a process without libct is stopped; 0: not */
    uint64_t traced_ns;  /* since when a debugger holds a process; 0: not */
};

#endif
