/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - sentences about workers that ended. */
#include "launcher/report.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/log.h"

#define LAST_LINES 20

const char *report_signal(int number, char *text, size_t bytes)
{
    const char *name = sigabbrev_np(number);

    if (name)
        snprintf(text, bytes, "SIG%s", name);
    else
        snprintf(text, bytes, "signal %d", number);
    return text;
}

void report_cause(const struct worker *worker, char *text, size_t bytes)
{
    char name[32];

    if (worker->how == CLD_EXITED)
        snprintf(text, bytes, "exited with code %d", worker->code);
    else
        snprintf(text, bytes, "died of %s%s", report_signal(worker->code, name, sizeof name),
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

/* Ended by the signal that ctrun sent, or obeyed it with an exit. */
static int was_stopped(const struct worker *worker)
{
    return worker->asked != 0 && worker->asked != SIGKILL;
}

static int was_killed(const struct worker *worker)
{
    return worker->asked == SIGKILL;
}

static int failed_too(const struct worker *worker)
{
    return worker->asked == 0 && worker_failed(worker) && !worker->first_failed;
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

void report_failure(const struct worker *workers, int size, struct worker *culprit,
                    const char *what_follows)
{
    char cause[64], others[900] = "", first[2048];
    const char *last = stream_last_lines(&culprit->err, LAST_LINES);
    int used;

    report_cause(culprit, cause, sizeof cause);
    add_ranks(others, sizeof others, workers, size, failed_too, "failed after it");
    add_ranks(others, sizeof others, workers, size, was_stopped, "stopped by ctrun");
    add_ranks(others, sizeof others, workers, size, was_killed,
              "did not obey and had to be killed");
    log_line(LOG_ERROR, "rank %d (pid %d, local rank %d) %s%s%s%s", culprit->rank,
             (int)culprit->pid, culprit->local_rank, cause, size > 1 ? ", first of all" : "",
             others, what_follows);
    if (!*last)
        return;
    used = snprintf(first, sizeof first, "ctrun: last words of rank %d:\n", culprit->rank);
    if (write(STDERR_FILENO, first, (size_t)used) < 0)
        return;
    while (*last) {
        const size_t length = strcspn(last, "\n");

        used = snprintf(first, sizeof first, "    | %.*s\n", (int)(length < 2000 ? length : 2000),
                        last);
        if (write(STDERR_FILENO, first, (size_t)used) < 0)
            return;
        last += length + (last[length] == '\n');
    }
}
