/* SPDX-License-Identifier: Apache-2.0 */
/* stall_detector.h - --stall: says who waits for whom when no call of a waiting rank has moved for
 * that long, and which process was stopped all the time.  A job that does not hang costs two looks
 * in that time, at memory that is ours and at the state of processes that do not use libct. */
#ifndef LAUNCHER_HEALTH_STALL_DETECTOR_H
#define LAUNCHER_HEALTH_STALL_DETECTOR_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "launcher/health/control_page_host.h"

struct verdict_list;

struct stall {
    struct event timer;
    const struct control_host *control;
    int seconds;         /* 0: nobody looks */
    uint64_t said;       /* the keys of what was said last; 0: nothing in this round */
    uint64_t again_ns;   /* that it must have waited to be said once more */
    uint64_t stopped_ns; /* since when a process is stopped that says nothing; 0: none is */
    uint64_t traced_ns;  /* since when a debugger holds one; likewise */
    void (*found)(void *arg, const struct verdict_list *list);
    void *arg;
};

void stall_setup(struct stall *stall, struct event_base *base, int seconds,
                 const struct control_host *control,
                 void (*found)(void *arg, const struct verdict_list *list), void *arg);
void stall_begin(struct stall *stall); /* a round */
void stall_end(struct stall *stall);

#endif
