/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - writes error messages about workers that ended and, below them, torchrun's blocks,
 * which log scrapers match. */
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
#include "runtime/util/log.h"
#include "runtime/util/ranges.h"
#include "runtime/util/signal_name.h"

/* ---- As torchrun lays it out ------------------------------------------------- */

/* The report has blocks of labelled lines.  The block of the root cause comes first:
 *
 *   ============================================================
 *   train.py FAILED
 *   ------------------------------------------------------------
 *   Root Cause (first observed failure):
 *   [0]:
 *     time      : 2026-11-21_12:30:00
 *     host      : node7
 *     rank      : 2 (local_rank: 2)
 *     exitcode  : 1 (pid: 4711)            then a blank, or "  (SIGSEGV)"
 *     error_file: /tmp/ctrun_x/attempt_0/2/error.json
 *     traceback : Traceback (most recent call last): ...
 *     cause     : added by ctrun: who killed the worker, or which rank failed before; may be absent
 *   ------------------------------------------------------------
 *   Failures:
 *   ...
 *
 * Ranks that failed after the root cause come before ranks that ctrun stopped.  Only the first
 * workers have a block, and long tracebacks are cut, so that the report fits on one screen.
 * --events records more. */

#define WIDEST 60
#define MOST_BLOCKS 3 /* most blocks below the block of the root cause */
#define ROOT_LINES 40 /* most lines of the root cause's traceback */
#define OTHER_LINES 3
#define LONGEST_LINE 1000 /* most bytes of a line in a traceback */

static const char *const hint =
    "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html";

/* Returns the exit code as torchrun prints it, which is -signal after a death by signal. */
static int report_exit_code(const struct worker *worker)
{
    return worker_exited(worker) ? worker_exit_code(worker) : -worker->code;
}

/* Replaces ASCII control characters except the tab, and C1 control characters, which UTF-8 encodes
 * as the bytes C2 80 to C2 9F. */
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

/* Returns the last `most` lines of a text, since the end of a traceback has the most
 * information. */
static const char *report_last_lines(const char *text, int most, int *left_out)
{
    int lines = 1;

    *left_out = 0;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    for (; lines > most; lines--, ++*left_out)
        text = strchr(text, '\n') + 1;
    return text;
}

/* Adds a text with torchrun's indentation.  The lines of a structured error are indented by two
 * blanks, and those of a plain text are not indented. */
static void add_text(struct text *out, char *text, int most, int structured)
{
    const char *at = text;
    size_t length = strlen(text);
    int left_out;

    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        text[--length] = '\0';
    at = report_last_lines(text, most, &left_out);
    if (left_out > 0)
        text_print(out, "(%d lines left out)\n%s", left_out, structured ? "  " : "");
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
    text_print(out, "  traceback : ");
    if (error->state == ERROR_BROKEN) {
        char why[300];

        snprintf(why, sizeof why, "Failed to parse reply file: %s", error->why);
        add_text(out, why, 2, 0);
    } else if (error->text) {
        if (error->state == ERROR_RAW)
            text_print(out, "(%s)\n", error->why);
        add_text(out, error->text, most, error->structured);
    } else if (!worker_exited(worker)) {
        const char *name = signal_abbreviation(worker->code);

        text_print(out, "Signal %d (%s%s) received by PID %d\n", worker->code,
                   name ? "SIG" : "<N/A>", name ? name : "", (int)worker->pid);
    } else {
        text_print(out, "%s\n", round->program->leading[0] ? hint : "<N/A>");
    }
}

/* ---- Blocks ------------------------------------------------------------------ */

static void add_cause(struct text *out, const struct failed_round *round,
                      const struct worker *worker)
{
    char detail[800], name[32];

    report_detail(round, worker, detail, sizeof detail);
    if (*detail)
        text_print(out, "  cause     : %s\n", detail);
    else if (worker->first_failed && round->root_cause)
        text_print(out, "  cause     : %s\n", round->root_cause);
    else if (failed_too(worker))
        text_print(out, "  cause     : failed after rank %d did\n", round->first_failed->rank);
    else if (was_stopped(worker))
        text_print(out, "  cause     : stopped by ctrun (%s)\n",
                   signal_name(worker->asked, name, sizeof name));
    else if (was_killed(worker))
        text_print(out, "  cause     : killed by ctrun, since it did not stop\n");
}

static void add_block(struct text *out, const struct failed_round *round,
                      const struct worker *worker, int index, int most_lines)
{
    const char *const name = worker_exited(worker) ? NULL : signal_abbreviation(worker->code);
    char host[256] = "", when[32], path[PATH_MAX];
    struct error_json error;
    struct tm day;
    time_t time;

    run_folder_error_file(round->files, worker->attempt, worker->local_rank, path, sizeof path);
    error_json_read(&error, path);
    time = error.timestamp > 0 && error.timestamp < 1e11 ? (time_t)error.timestamp : worker->ended;
    strftime(when, sizeof when, "%Y-%m-%d_%H:%M:%S", localtime_r(&time, &day));
    gethostname(host, sizeof host - 1);
    text_print(out, "[%d]:\n  time      : %s\n  host      : %s\n", index, when, host);
    text_print(out, "  rank      : %d (local_rank: %d)\n", worker->rank, worker->local_rank);
    text_print(out, "  exitcode  : %d (pid: %d) ", report_exit_code(worker), (int)worker->pid);
    if (!worker_exited(worker))
        text_print(out, " (%s%s)", name ? "SIG" : "<N/A>", name ? name : "");
    text_print(out, "\n  error_file: %s\n", error.bytes ? path : "<N/A>");
    add_traceback(out, round, worker, &error, most_lines);
    error_json_free(&error);
    add_cause(out, round, worker);
}

/* True if the report lists the worker as stopped by ctrun.  Like torchrun's report, it leaves out
 * workers that exited with code 0 when they were asked to stop. */
static int stopped(const struct worker *worker)
{
    return worker->asked != 0 && worker_failed(worker) && !worker->first_failed;
}

/* Adds the blocks of the workers for which pick() returns non-zero.  If there are more blocks than
 * MOST_BLOCKS, adds one line with the ranks of the rest.  Returns `before` plus the number of such
 * workers. */
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
        text_print(out, "  and %d more %s: rank%s %s\n", left, fate, left > 1 ? "s" : "", ranks);
    return before + left;
}

/* Returns the width of the widest line of the title and the body, but at most WIDEST. */
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
    text_print(&title, " FAILED");
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
    text_print(out, "Root Cause (first observed failure):\n");
    text_add(out, root.data, root.used);
    add_rule(out, '-', width);
    text_print(out, "Failures:\n%s", count ? "" : "  <NO_OTHER_FAILURES>\n");
    text_add(out, others.data, others.used);
    add_rule(out, '=', width);
    free(title.data);
    free(root.data);
    free(others.data);
}

/* Adds a few lines with facts that the error message does not have.  ctrun writes this short report
 * while restarts are left, and with --failure-report=short. */
static void add_short(struct text *out, const struct failed_round *round)
{
    const struct worker *first_failed = round->first_failed;
    struct error_json error;
    char detail[800], path[PATH_MAX];

    report_detail(round, first_failed, detail, sizeof detail);
    if (*detail)
        text_print(out, "ctrun: rank %d: %s\n", first_failed->rank, detail);
    run_folder_error_file(round->files, first_failed->attempt, first_failed->local_rank, path,
                          sizeof path);
    error_json_read(&error, path);
    if (error.state != ERROR_ABSENT) {
        text_print(out, "ctrun: error of rank %d:\n", first_failed->rank);
        add_traceback(out, round, first_failed, &error, ROOT_LINES);
    }
    error_json_free(&error);
}

/* ---- Error messages ---------------------------------------------------------- */

#define LAST_LINES 20
#define LONGEST_WORDS 2000 /* most bytes shown of a line of the worker's stderr */

void report_cause(const struct worker *worker, char *text, size_t bytes)
{
    char name[32];

    if (worker->fault.code)
        snprintf(text, bytes, "%s", worker->fault.what);
    else if (worker->how == CLD_EXITED)
        snprintf(text, bytes, "exited with code %d", worker->code);
    else
        snprintf(text, bytes, "was killed by %s%s", signal_name(worker->code, name, sizeof name),
                 worker->how == CLD_DUMPED ? " (core dumped)" : "");
}

struct picked {
    const struct worker *workers;
    int (*pick)(const struct worker *worker);
};

static int is_picked(const void *set, int i)
{
    const struct picked *picked = set;

    return picked->pick(&picked->workers[i]);
}

void report_ranks(const struct worker *workers, int size, int (*pick)(const struct worker *worker),
                  char *text, size_t bytes)
{
    const struct picked picked = { workers, pick };

    ranges_print(size > 0 ? workers[0].rank : 0, size, is_picked, &picked, text, bytes);
}

static void add_ranks(char *text, size_t bytes, const struct worker *workers, int size,
                      int (*pick)(const struct worker *worker), const char *before,
                      const char *after)
{
    const size_t used = strlen(text);
    char ranks[256], words[300];

    report_ranks(workers, size, pick, ranks, sizeof ranks);
    ranges_as_words(ranks, words, sizeof words);
    if (*ranks)
        snprintf(text + used, bytes - used, "%s%s %s%s.", before,
                 strpbrk(ranks, ",-") ? "ranks" : "rank", words, after);
}

void report_detail(const struct failed_round *round, const struct worker *worker, char *text,
                   size_t bytes)
{
    char cause[200], core[600] = "";

    *text = '\0';
    if (worker->fault.code) {
        snprintf(text, bytes, "%s", worker->fault.detail);
    } else if (worker->how == CLD_DUMPED) {
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
    char cause[64], local[32] = "", others[1100] = "";

    report_cause(first_failed, cause, sizeof cause);
    if (!round->root_cause) /* the root cause names these ranks */
        add_ranks(others, sizeof others, round->workers, round->size, failed_too, " Then ",
                  " failed");
    add_ranks(others, sizeof others, round->workers, round->size, was_stopped, " ctrun stopped ",
              "");
    add_ranks(others, sizeof others, round->workers, round->size, was_killed, " ctrun killed ",
              ", which did not stop when asked");
    if (first_failed->local_rank != first_failed->rank)
        snprintf(local, sizeof local, ", local rank %d", first_failed->local_rank);
    if (round->root_cause)
        log_line(LOG_ERROR, "%s.%s%s", round->root_cause, others, what_follows);
    else
        log_line(LOG_ERROR, "rank %d (pid %d%s) %s%s.%s%s", first_failed->rank,
                 (int)first_failed->pid, local, round->size > 1 ? "failed first: it " : "", cause,
                 others, what_follows);
}

static void add_last_words(struct text *out, struct worker *first_failed)
{
    const char *last;
    size_t left = stream_last_lines(&first_failed->err, LAST_LINES, &last);
    char title[64];

    if (left == 0)
        return;
    snprintf(title, sizeof title, "ctrun: last words of rank %d:\n", first_failed->rank);
    text_add(out, title, strlen(title));
    while (left > 0) {
        const char *const end = memchr(last, '\n', left);
        const size_t length = end ? (size_t)(end - last) : left;
        const char *words = last, *over;
        size_t count;

        while ((over = memchr(words, '\r', (size_t)(last + length - words)))
               && over + 1 < last + length)
            words = over + 1; /* skips a progress bar that a later one has replaced */
        count = (size_t)(last + length - words);
        text_add(out, "    | ", 6);
        report_add_plain(out, words, count < LONGEST_WORDS ? count : LONGEST_WORDS);
        text_add(out, "\n", 1);
        last += length + (end != NULL);
        left -= length + (end != NULL);
    }
}

void report_failure(const struct failed_round *round, const char *what_follows)
{
    struct text out = { 0 };

    sentence(round, what_follows);
    if (*what_follows || round->is_short)
        add_short(&out, round);
    else
        report_add_blocks(&out, round);
    add_last_words(&out, round->first_failed);
    /* One call writes the whole text, so that no other line appears in the middle. */
    log_text(out.data, out.used);
    free(out.data);
}

void report_own_fault(const char *what)
{
    const char *const to = getenv("TORCHELASTIC_ERROR_FILE");

    if (to && *to && error_json_write(to, what) < 0)
        log_line(LOG_WARN, "cannot write TORCHELASTIC_ERROR_FILE=%s: %s", to, strerror(errno));
}

int report_upward(const struct failed_round *round)
{
    const struct worker *first_failed = round->first_failed;
    const char *const to = getenv("TORCHELASTIC_ERROR_FILE");
    struct error_json error;
    char path[PATH_MAX];
    int is_there;

    if (!to || !*to)
        return 0;
    run_folder_error_file(round->files, first_failed->attempt, first_failed->local_rank, path,
                          sizeof path);
    error_json_read(&error, path);
    is_there = error.bytes != NULL;
    if (is_there && error_json_copy(&error, to, report_exit_code(first_failed)) < 0)
        log_line(LOG_WARN, "cannot write TORCHELASTIC_ERROR_FILE=%s: %s", to, strerror(errno));
    error_json_free(&error);
    return is_there;
}
