/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - what happens, for programs: a JSON object a line (docs/events.md).
 *
 * --events=FILE appends them to a file, which several nodes may share.  Without it the calls below
 * do nothing. */
#ifndef LAUNCHER_JOB_EVENTS_H
#define LAUNCHER_JOB_EVENTS_H

#include "config/options.h"
#include "launcher/nodes/nodes.h"
#include "launcher/report/report.h"

struct events {
    const struct options *options;
    int fd;           /* -1: no --events */
    int torn, failed; /* the last line is not whole; a failure was said */
    const char *run_id;
    struct plan plan; /* of the newest round */
    struct text line;
};

/* -1: the error is logged.  events_close() is owed in both cases. */
int events_open(struct events *events, const struct options *options);
void events_close(struct events *events);

void events_job_started(struct events *events, const char *run_id, int size);
/* round->first_failed NULL: the job did not end by a worker here.  fault: what ctrun said last;
 * "": nothing. */
void events_job_ended(struct events *events, int code, const struct failed_round *round,
                      const char *fault);

void events_round_began(struct events *events, const struct plan *plan);
void events_restarted(struct events *events, const struct plan *plan, int most);
void events_worker_started(struct events *events, const struct worker *worker);
/* round->first_failed may be NULL; its_own: it did not follow another's failure. */
void events_worker_ended(struct events *events, const struct failed_round *round,
                         const struct worker *worker, int its_own);
struct verdict_list;
void events_stalled(struct events *events, const struct verdict_list *list);
void events_slow(struct events *events, const struct slow_rank *slow, int seconds);
void events_stopping(struct events *events, int signal, const char *why);
void events_node(struct events *events, int node, int there);

#endif
