/* SPDX-License-Identifier: Apache-2.0 */
/* stall_observer.h - reports a stall when a rank has waited for the time of --stall.  The report
 * says which ranks wait for which, and which process was stopped for that time.  While the job
 * makes progress, ctrun only checks its own control page and the state of the processes that do not
 * use libct, twice in the time of --stall. */
#ifndef LAUNCHER_OBSERVERS_STALL_OBSERVER_H
#define LAUNCHER_OBSERVERS_STALL_OBSERVER_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "launcher/inspect/proc_info.h"

struct job;

/* The state of the observer.  It is in this header only for the observer's test. */
struct stall {
    struct job *job;
    struct event timer;
    int seconds;           /* the time of --stall; 0 if the observer is off */
    uint64_t reported;     /* hash of the last report; 0 if this round has no report yet */
    uint64_t again_ns;     /* the same report is logged again after a wait this long */
    uint64_t stopped_ns;   /* when a process without libct was first seen stopped; 0 if none is */
    int64_t answers_until; /* deadline for the observers' answers; 0 if ctrun has not asked */
    struct process_work work; /* of the job, at the last look */
    uint64_t looked_ns;       /* time of that look */
    uint64_t worked_ns;       /* when they were last seen to work; 0 if ctrun sees calls */
    uint64_t traced_ns;       /* when a debugger was first seen to hold a process; 0 if none does */
};

#endif
