/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - what ctrun writes to stderr about workers that ended. */
#ifndef LAUNCHER_REPORT_REPORT_H
#define LAUNCHER_REPORT_REPORT_H

#include "launcher/report/oom_kill.h"
#include "launcher/stdio/log_dir.h"
#include "launcher/workers/worker.h"

/* A round that failed, all of its workers gone. */
struct failed_round {
    struct worker *workers;
    int size;
    struct worker *first_failed;
    const struct program *program;
    const struct run_folder *files;
    const struct oom_watch *oom;
    int is_short;           /* --failure-report=short */
    const char *root_cause; /* root_graph_words(); NULL: the report names the first failure */
};

/* Logs one sentence: the first failure, then the workers that were stopped because of it, then
 * what_follows.  what_follows is "" when the job is over: then torchrun's layout comes next, all on
 * one screen, unless the user wants it short.  At the end come the last lines of the worker that
 * failed first, if ctrun has its stderr. */
void report_failure(const struct failed_round *round, const char *what_follows);

/* Copies the error.json of the first failure to TORCHELASTIC_ERROR_FILE, if ctrun's caller set one,
 * as torchrun does.  1: the worker wrote an error and the caller wants it. */
int report_upward(const struct failed_round *round);

/* Writes a failure of ctrun itself to that file. */
void report_own_fault(const char *what);

/* Writes the ranks of the workers for which pick() is not 0: "0,2-3"; "" if there are no such
 * workers. */
void report_ranks(const struct worker *workers, int size, int (*pick)(const struct worker *worker),
                  char *text, size_t bytes);

/* "exited with code 7", "died of SIGSEGV (core dumped)" */
void report_cause(const struct worker *worker, char *text, size_t bytes);

/* Writes what report_cause() has no room for: what killed the worker, where its core is; "":
 * nothing. */
void report_detail(const struct failed_round *round, const struct worker *worker, char *text,
                   size_t bytes);

/* Says whether the worker died of the signal that ctrun sent, or obeyed it with an exit. */
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

/* Adds torchrun's blocks: title, root cause, failures. */
void report_add_blocks(struct text *out, const struct failed_round *round);

/* Adds bytes from an untrusted source, with '?' for each control character. */
void report_add_plain(struct text *out, const char *bytes, size_t size);

#endif
