/* SPDX-License-Identifier: Apache-2.0 */
/* ctctl.h - the commands of ctctl.  words: those behind the command, as many as its row allows
 * (command_table.c).  Each returns the exit code. */
#ifndef LAUNCHER_CTCTL_CTCTL_H
#define LAUNCHER_CTCTL_CTCTL_H

#include "launcher/doctor/doctor.h"
#include "launcher/inspect/find_jobs.h"

enum { NO_RANK_WAITS = 0, RANKS_WAIT = 1, CANNOT_MERGE = 1, CANNOT_MAKE = 1, WRONG_USAGE = 2 };

/* What the command line selects. */
struct ctctl_options {
    const char *job; /* run id, or pid of ctrun; NULL: all */
    int rank;        /* of stack */
    int json, verbose;
    double after_s;
    const char *output; /* of trace merge; NULL: standard output */
    const char *shell;  /* of --print-completion */
    struct doctor_options doctor;
};

int command_ps(struct ctctl_options *options, char **words, int count);
int command_status(struct ctctl_options *options, char **words, int count);
int command_top(struct ctctl_options *options, char **words, int count);
int command_stack(struct ctctl_options *options, char **words, int count);
int command_trace_merge(struct ctctl_options *options, char **words, int count);
int command_new(struct ctctl_options *options, char **words, int count);
int command_doctor(struct ctctl_options *options, char **words, int count);

/* ---- select.c: the jobs of this host, and those of them that the command line selects ---- */

typedef int jobs_shower(struct job_list *jobs, const struct ctctl_options *options);

/* show() gets the jobs of this host and returns the exit code.  words: [JOB]; if it names no job
 * that runs here, that is the error. */
int jobs_run(struct ctctl_options *options, char **words, int count, jobs_shower *show);

/* The command line selects the job. */
int job_is_selected(const struct job_snapshot *job, const struct ctctl_options *options);

/* "4 ranks", "4 of 8 ranks" */
void job_ranks(const struct job_snapshot *job, char *text, size_t size);
void job_user(const struct job_snapshot *job, char *text, size_t size);
/* "12.0 s", since the round began */
void job_since(const struct job_snapshot *job, char *text, size_t size);

#endif
