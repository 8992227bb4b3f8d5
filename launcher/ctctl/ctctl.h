/* SPDX-License-Identifier: Apache-2.0 */
/* ctctl.h - declares the commands of ctctl.  Each function is called with the words after the
 * command's name, as many as its row in command_table.c allows, and returns the exit code. */
#ifndef LAUNCHER_CTCTL_CTCTL_H
#define LAUNCHER_CTCTL_CTCTL_H

#include "launcher/doctor/doctor.h"
#include "launcher/inspect/find_jobs.h"

enum { NO_RANK_WAITS = 0, RANKS_WAIT = 1, CANNOT_MERGE = 1, CANNOT_MAKE = 1, WRONG_USAGE = 2 };

/* The options of the command line, and the job and the rank that the user selected. */
struct ctctl_options {
    const char *job; /* run id of the job, or pid of its ctrun; NULL for all jobs */
    int rank;        /* the rank that ctctl stack prints */
    int json, verbose;
    int follow;
    int lines; /* how many of the last lines to print; -1 if the user did not say */
    double after_s;
    const char *output; /* output file of ctctl trace merge; NULL for standard output */
    const char *shell;  /* value of --print-completion */
    struct doctor_options doctor;
};

int command_ps(struct ctctl_options *options, char **words, int count);
int command_status(struct ctctl_options *options, char **words, int count);
int command_top(struct ctctl_options *options, char **words, int count);
int command_stack(struct ctctl_options *options, char **words, int count);
int command_attach(struct ctctl_options *options, char **words, int count);
int command_logs(struct ctctl_options *options, char **words, int count);
int command_wait(struct ctctl_options *options, char **words, int count);
int command_kill(struct ctctl_options *options, char **words, int count);
int command_trace_merge(struct ctctl_options *options, char **words, int count);
int command_new(struct ctctl_options *options, char **words, int count);
int command_doctor(struct ctctl_options *options, char **words, int count);

/* ---- select.c: the jobs of this host that the command line selects ---- */

typedef int jobs_shower(struct job_list *jobs, const struct ctctl_options *options);

/* Calls show() with all jobs of this host, and returns the exit code of show().  `words` may have
 * one word, the user's JOB.  If no job of this host has that name, prints an error message and
 * returns WRONG_USAGE. */
int jobs_run(struct ctctl_options *options, char **words, int count, jobs_shower *show);

/* Returns 1 if the command line selects the job. */
int job_is_selected(const struct job_snapshot *job, const struct ctctl_options *options);

/* Writes the number of ranks, "4 ranks" or "4 of 8 ranks". */
void job_ranks(const struct job_snapshot *job, char *text, size_t size);
void job_user(const struct job_snapshot *job, char *text, size_t size);
/* Writes the time since the round began, such as "12.0 s". */
void job_since(const struct job_snapshot *job, char *text, size_t size);

#endif
