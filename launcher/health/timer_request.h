/* SPDX-License-Identifier: Apache-2.0 */
/* timer_request.h - a line that a worker writes to its TORCHELASTIC_TIMER_FILE:
 *   {"version": 1, "pid": 12, "scope_id": "step", "expiration_time": 1e9, "signal": 9} */
#ifndef LAUNCHER_HEALTH_TIMER_REQUEST_H
#define LAUNCHER_HEALTH_TIMER_REQUEST_H

#include <sys/types.h>

struct timer_request {
    pid_t pid;
    char scope[128]; /* between the quotes, as it was written */
    double expires;  /* seconds since 1970; negative: the timer is taken back */
    int signal;      /* 0: only the timer is named */
};

/* 0, or -1: the line is something else.  Members that are not known are passed over. */
int timer_request_read(struct timer_request *request, const char *line);

#endif
