/* SPDX-License-Identifier: Apache-2.0 */
/* report_torchrun.c - torchrun's blocks of labelled lines, the root cause first:
 *
 *   ============================================================
 *   train.py FAILED
 *   ------------------------------------------------------------
 *   Root Cause (first observed failure):
 *   [0]:
 *     time      : 2026-11-21_12:30:00
 *     host      : node7
 *     rank      : 2 (local_rank: 2)
 *     exitcode  : 1 (pid: 4711)            a blank ends it, or "  (SIGSEGV)"
 *     error_file: /tmp/ctrun_x/attempt_0/2/error.json
 *     traceback : Traceback (most recent call last): ...
 *     cause     : ours: who killed it, whom it followed; left out if there is nothing to say
 *   ------------------------------------------------------------
 *   Failures:
 *   ...
 *
 * Who failed because of it comes before whom we stopped.  Many workers and long
 * tracebacks are cut: it all stays on one screen, since more is in the events. */
#include "launcher/report/report_torchrun.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/report/error_file.h"
#include "runtime/util/signal_name.h"

#define WIDEST 60
#define MOST_BLOCKS 3 /* below the root cause */
#define ROOT_LINES 40 /* of its traceback */
#define OTHER_LINES 3
#define LONGEST_LINE 1000

static const char *const hint =
    "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";

static void add(struct text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *out, const char *format, ...)
{
    char line[2048];
    va_list args;
    int used;

    va_start(args, format);
    used = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    text_add(out, line, (size_t)used < sizeof line ? (size_t)used : sizeof line - 1);
}

/* C1 controls too, as UTF-8 writes them: C2 80 to C2 9F. */
void report_add_plain(struct text *out, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        const int c1 = c == 0xc2 && i + 1 < size && (bytes[i + 1] & 0xe0) == 0x80;

        text_add(out, (c < ' ' && c != '\t') || c == 127 || c1 ? "?" : bytes + i, 1);
        i += (size_t)c1;
    }
}

/* ---- The text of an error ---------------------------------------------------- */

/* The end says most: of too many lines the first ones are left out. */
static const char *last_lines(const char *text, int most, int *left_out)
{
    int lines = 1;

    *left_out = 0;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    for (; lines > most; lines--, ++*left_out)
        text = strchr(text, '\n') + 1;
    return text;
}

/* As torchrun indents it: a structured one by two blanks, a flat one not at all. */
static void add_text(struct text *out, char *text, int most, int structured)
{
    const char *at = text;
    size_t length = strlen(text);
    int left_out;

    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        text[--length] = '\0';
    at = last_lines(text, most, &left_out);
    if (left_out > 0)
        add(out, "(%d lines left out)\n%s", left_out, structured ? "  " : "");
    for (;;) {
        length = strcspn(at, "\n");
        report_add_plain(out, at, length < LONGEST_LINE ? length : LONGEST_LINE);
        text_add(out, length > LONGEST_LINE ? "...\n" : "\n", length > LONGEST_LINE ? 4 : 1);
        if (!at[length])
            return;
        at += length + 1;
        if (structured)
            text_add(out, "  ", 2);
    }
}

static void add_traceback(struct text *out, const struct failed_round *round,
                          const struct worker *worker, const struct error_json *error, int most)
{
    add(out, "  traceback : ");
    if (error->state == ERROR_BROKEN) {
        char why[300];

        snprintf(why, sizeof why, "Failed to parse reply file: %s", error->why);
        add_text(out, why, 2, 0);
    } else if (error->text) {
        if (error->state == ERROR_RAW)
            add(out, "(%s)\n", error->why);
        add_text(out, error->text, most, error->structured);
    } else if (worker->how != CLD_EXITED) {
        const char *name = sigabbrev_np(worker->code);

        add(out, "Signal %d (%s%s) received by PID %d\n", worker->code, name ? "SIG" : "<N/A>",
            name ? name : "", (int)worker->pid);
    } else {
        add(out, "%s\n", round->program->leading[0] ? hint : "<N/A>");
    }
}

/* ---- Blocks ------------------------------------------------------------------ */

static void add_cause(struct text *out, const struct failed_round *round,
                      const struct worker *worker)
{
    char detail[800], name[32];

    report_detail(round, worker, detail, sizeof detail);
    if (*detail)
        add(out, "  cause     : %s\n", detail);
    else if (failed_too(worker))
        add(out, "  cause     : failed after rank %d did\n", round->first_failed->rank);
    else if (was_stopped(worker))
        add(out, "  cause     : stopped by ctrun (%s)\n",
            signal_name(worker->asked, name, sizeof name));
    else if (was_killed(worker))
        add(out, "  cause     : killed by ctrun, since it did not stop\n");
}

static void add_block(struct text *out, const struct failed_round *round,
                      const struct worker *worker, int index, int most_lines)
{
    const char *const name = worker->how == CLD_EXITED ? NULL : sigabbrev_np(worker->code);
    char host[256] = "", when[32], path[PATH_MAX];
    struct error_json error;
    struct tm day;
    time_t time;

    run_folder_error_file(round->files, worker->attempt, worker->local_rank, path, sizeof path);
    error_json_read(&error, path);
    time = error.timestamp > 0 && error.timestamp < 1e11 ? (time_t)error.timestamp : worker->ended;
    strftime(when, sizeof when, "%Y-%m-%d_%H:%M:%S", localtime_r(&time, &day));
    gethostname(host, sizeof host - 1);
    add(out, "[%d]:\n  time      : %s\n  host      : %s\n", index, when, host);
    add(out, "  rank      : %d (local_rank: %d)\n", worker->rank, worker->local_rank);
    add(out, "  exitcode  : %d (pid: %d) ", report_exit_code(worker), (int)worker->pid);
    if (worker->how != CLD_EXITED)
        add(out, " (%s%s)", name ? "SIG" : "<N/A>", name ? name : "");
    add(out, "\n  error_file: %s\n", error.bytes ? path : "<N/A>");
    add_traceback(out, round, worker, &error, most_lines);
    error_json_free(&error);
    add_cause(out, round, worker);
}

/* torchrun lists no worker that obeyed with an exit 0. */
static int stopped(const struct worker *worker)
{
    return worker->asked != 0 && worker_failed(worker);
}

/* How many there are, with those before. */
static int add_failures(struct text *out, const struct failed_round *round, int before,
                        int (*pick)(const struct worker *worker), const char *fate)
{
    int next = 0, left = 0;
    char ranks[256];

    for (; next < round->size && before < MOST_BLOCKS; next++)
        if (pick(&round->workers[next]))
            add_block(out, round, &round->workers[next], ++before, OTHER_LINES);
    for (int i = next; i < round->size; i++)
        left += pick(&round->workers[i]) != 0;
    report_ranks(round->workers + next, round->size - next, pick, ranks, sizeof ranks);
    if (left > 0)
        add(out, "  and %d more %s: rank%s %s\n", left, fate, left > 1 ? "s" : "", ranks);
    return before + left;
}

/* The lines' width is known when they are there. */
static size_t widest(const struct text *title, const struct text *body)
{
    size_t most = title->used, length = 0;

    for (size_t i = 0; i < body->used; i++) {
        length = body->data[i] == '\n' ? 0 : length + 1;
        most = length > most ? length : most;
    }
    return most < WIDEST ? most : WIDEST;
}

static void add_rule(struct text *out, char mark, size_t width)
{
    char rule[WIDEST + 1];

    memset(rule, mark, width);
    rule[width] = '\n';
    text_add(out, rule, width + 1);
}

void report_add_blocks(struct text *out, const struct failed_round *round)
{
    struct text title = { 0 }, root = { 0 }, others = { 0 };
    int count;
    size_t width, more;

    report_add_plain(&title, round->program->words[0], strlen(round->program->words[0]));
    add(&title, " FAILED");
    add_block(&root, round, round->first_failed, 0, ROOT_LINES);
    count = add_failures(&others, round, 0, failed_too, "failed after it");
    count = add_failures(&others, round, count, stopped, "stopped by ctrun");
    width = widest(&title, &root);
    more = widest(&title, &others);
    width = more > width ? more : width;

    add_rule(out, '=', width);
    text_add(out, title.data, title.used);
    text_add(out, "\n", 1);
    add_rule(out, '-', width);
    add(out, "Root Cause (first observed failure):\n");
    text_add(out, root.data, root.used);
    add_rule(out, '-', width);
    add(out, "Failures:\n%s", count ? "" : "  <NO_OTHER_FAILURES>\n");
    text_add(out, others.data, others.used);
    add_rule(out, '=', width);
    free(title.data);
    free(root.data);
    free(others.data);
}

void report_add_short(struct text *out, const struct failed_round *round)
{
    const struct worker *first_failed = round->first_failed;
    struct error_json error;
    char detail[800], path[PATH_MAX];

    report_detail(round, first_failed, detail, sizeof detail);
    if (*detail)
        add(out, "ctrun: rank %d: %s\n", first_failed->rank, detail);
    run_folder_error_file(round->files, first_failed->attempt, first_failed->local_rank, path,
                          sizeof path);
    error_json_read(&error, path);
    if (error.state != ERROR_ABSENT) {
        add(out, "ctrun: error of rank %d:\n", first_failed->rank);
        add_traceback(out, round, first_failed, &error, ROOT_LINES);
    }
    error_json_free(&error);
}
