/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - sentences about workers that ended; what stands below them is in
 * report_torchrun.c. */
#include "launcher/report/report.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/report/core_file.h"
#include "launcher/report/error_file.h"
#include "launcher/report/report_torchrun.h"
#include "runtime/util/log.h"
#include "runtime/util/signal_name.h"

#define LAST_LINES 20
#define LONGEST_LINE 2000

void report_cause(const struct worker *worker, char *text, size_t bytes)
{
    char name[32];

    if (worker->how == CLD_EXITED)
        snprintf(text, bytes, "exited with code %d", worker->code);
    else
        snprintf(text, bytes, "died of %s%s", signal_name(worker->code, name, sizeof name),
                 worker->how == CLD_DUMPED ? " (core dumped)" : "");
}

void report_ranks(const struct worker *workers, int size, int (*pick)(const struct worker *worker),
                  char *text, size_t bytes)
{
    size_t used = 0;

    *text = '\0';
    for (int i = 0; i < size && used < bytes; i++) {
        const int first = i;

        if (!pick(&workers[i]))
            continue;
        while (i + 1 < size && pick(&workers[i + 1]))
            i++;
        used += (size_t)snprintf(text + used, bytes - used, "%s%d", used ? "," : "",
                                 workers[first].rank);
        if (i > first && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "-%d", workers[i].rank);
    }
}

static void add_ranks(char *text, size_t bytes, const struct worker *workers, int size,
                      int (*pick)(const struct worker *worker), const char *fate)
{
    const size_t used = strlen(text);
    char ranks[256];

    report_ranks(workers, size, pick, ranks, sizeof ranks);
    if (*ranks)
        snprintf(text + used, bytes - used, "; %s %s %s", strpbrk(ranks, ",-") ? "ranks" : "rank",
                 ranks, fate);
}

void report_detail(const struct failed_round *round, const struct worker *worker, char *text,
                   size_t bytes)
{
    char cause[200], core[600] = "";

    *text = '\0';
    if (worker->how == CLD_DUMPED) {
        core_file_find(worker, round->program->path, core, sizeof core);
        snprintf(text, bytes, "core dumped: %s", core);
    } else if (worker->how == CLD_KILLED && worker->code == SIGKILL && !was_killed(worker)) {
        if (oom_killed(round->oom, cause, sizeof cause))
            snprintf(text, bytes, "killed by the kernel: out of memory (%s)", cause);
        else
            snprintf(text, bytes, "SIGKILL, not sent by ctrun");
    }
}

static void sentence(const struct failed_round *round, const char *what_follows)
{
    const struct worker *first_failed = round->first_failed;
    char cause[64], others[900] = "";

    report_cause(first_failed, cause, sizeof cause);
    add_ranks(others, sizeof others, round->workers, round->size, failed_too, "failed after it");
    add_ranks(others, sizeof others, round->workers, round->size, was_stopped, "stopped by ctrun");
    add_ranks(others, sizeof others, round->workers, round->size, was_killed,
              "did not obey and had to be killed");
    log_line(LOG_ERROR, "rank %d (pid %d, local rank %d) %s%s%s%s", first_failed->rank,
             (int)first_failed->pid, first_failed->local_rank, cause,
             round->size > 1 ? ", first of all" : "", others, what_follows);
}

static void add_last_words(struct text *out, struct worker *first_failed)
{
    const char *last = stream_last_lines(&first_failed->err, LAST_LINES);
    char title[64];

    if (!*last)
        return;
    snprintf(title, sizeof title, "ctrun: last words of rank %d:\n", first_failed->rank);
    text_add(out, title, strlen(title));
    while (*last) {
        const size_t length = strcspn(last, "\n");

        text_add(out, "    | ", 6);
        report_add_plain(out, last, length < LONGEST_LINE ? length : LONGEST_LINE);
        text_add(out, "\n", 1);
        last += length + (last[length] == '\n');
    }
}

void report_failure(const struct failed_round *round, const char *what_follows)
{
    struct text out = { 0 };

    sentence(round, what_follows);
    if (*what_follows)
        report_add_short(&out, round);
    else
        report_add_blocks(&out, round);
    add_last_words(&out, round->first_failed);
    log_text(out.data, out.used); /* one piece: no line of others comes between */
    free(out.data);
}

void report_own_fault(const char *what)
{
    const char *const to = getenv("TORCHELASTIC_ERROR_FILE");

    if (to && *to && error_json_write(to, what) < 0)
        log_line(LOG_WARN, "cannot write TORCHELASTIC_ERROR_FILE=%s: %s", to, strerror(errno));
}

void report_upward(const struct failed_round *round)
{
    const struct worker *first_failed = round->first_failed;
    const char *const to = getenv("TORCHELASTIC_ERROR_FILE");
    struct error_json error;
    char path[PATH_MAX];

    if (!to || !*to)
        return;
    run_folder_error_file(round->files, first_failed->attempt, first_failed->local_rank, path,
                          sizeof path);
    error_json_read(&error, path);
    if (error.bytes && error_json_copy(&error, to, report_exit_code(first_failed)) < 0)
        log_line(LOG_WARN, "cannot write TORCHELASTIC_ERROR_FILE=%s: %s", to, strerror(errno));
    error_json_free(&error);
}
