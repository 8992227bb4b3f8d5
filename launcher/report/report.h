/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - the reports about ended workers that ctrun writes to stderr. */
#ifndef LAUNCHER_REPORT_REPORT_H
#define LAUNCHER_REPORT_REPORT_H

#include "launcher/report/oom_kill.h"
#include "launcher/stdio/log_dir.h"
#include "launcher/workers/worker.h"

/* A round that failed, and of which all workers have ended. */
struct failed_round {
    struct worker *workers;
    int size;
    struct worker *first_failed;
    const struct program *program;
    const struct run_folder *files;
    const struct oom_watch *oom;
    int is_short; /* 1 with --failure-report=short */
    /* Text of root_graph_words(), or NULL if no root cause was found, so the report begins with the
     * first failure. */
    const char *root_cause;
};

/* Logs an error message with the first failure, then the workers that ctrun stopped because of this
 * failure, then what_follows.
 *
 * what_follows is "" when the job is over.  In that case torchrun's blocks come next, short enough
 * for one screen, unless the user wants a short report.  The report ends with the last lines of
 * stderr of the worker that failed first, if ctrun reads its stderr. */
void report_failure(const struct failed_round *round, const char *what_follows);

/* Copies the error.json of the worker that failed first to TORCHELASTIC_ERROR_FILE, as torchrun
 * does, if ctrun's caller set that variable.  Returns 1 if the variable is set and the worker wrote
 * an error, else 0. */
int report_upward(const struct failed_round *round);

/* Writes an error of ctrun itself to TORCHELASTIC_ERROR_FILE, if ctrun's caller set that
 * variable. */
void report_own_fault(const char *what);

/* Writes the ranks of the workers for which pick() returns non-zero, for example "0,2-3".  Writes
 * "" if there are no such workers. */
void report_ranks(const struct worker *workers, int size, int (*pick)(const struct worker *worker),
                  char *text, size_t bytes);

/* Writes how the worker ended, such as "exited with code 7" or "was killed by SIGSEGV (core
 * dumped)". */
void report_cause(const struct worker *worker, char *text, size_t bytes);

/* Writes details that report_cause() leaves out, such as who killed the worker, or where its core
 * file is.  Writes "" if there are no details. */
void report_detail(const struct failed_round *round, const struct worker *worker, char *text,
                   size_t bytes);

/* True if the worker stopped because ctrun asked it to.  The worker may have died of the signal or
 * exited.  False for the worker that failed first. */
static inline int was_stopped(const struct worker *worker)
{
    return worker->asked != 0 && worker->asked != SIGKILL && !worker->first_failed;
}

static inline int was_killed(const struct worker *worker)
{
    return worker->asked == SIGKILL;
}

static inline int failed_too(const struct worker *worker)
{
    return worker->asked == 0 && worker_failed(worker) && !worker->first_failed;
}

/* ---- As torchrun lays it out ------------------------------------------------- */

/* Adds torchrun's blocks, which are the title, the root cause and the other failures. */
void report_add_blocks(struct text *out, const struct failed_round *round);

/* Adds bytes from an untrusted source.  Replaces each control character with '?'. */
void report_add_plain(struct text *out, const char *bytes, size_t size);

#endif
