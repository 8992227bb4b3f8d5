/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/status/node_rows.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/inspect/ask.h"
#include "launcher/inspect/page_reader.h"
#include "launcher/inspect/proc_info.h"
#include "launcher/inspect/source_lines.h"
#include "launcher/inspect/verdict_text.h"
#include "launcher/status/rank_row.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define LOOK_MS 100          /* ms between two reads of the control page */
#define WAITS_NS 5000000000u /* ns that a rank must wait to be shown as waiting */
#define LINES 5              /* most lines of output in a row */
#define LINES_BYTES 800

/* ---- Time in calls ---------------------------------------------------------------------- */

/* True if the rank is in a call.  Calls include messages and waits that the rank announced, such as
 * a wait for the store. */
static int is_in_call(const struct control_rank *page)
{
    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (control_is_in_call(&page->groups[i]))
            return 1;
    return __atomic_load_n(&page->waiting_for[0], __ATOMIC_RELAXED) != '\0';
}

static void look(evutil_socket_t fd, short what, void *arg)
{
    struct node_rows *rows = arg;
    const int64_t now = clock_ms(), passed = now - rows->looked_ms;

    (void)fd;
    (void)what;
    rows->looked_ms = now;
    for (int i = 0; i < rows->size; i++)
        if (rows->workers[i].running && is_in_call(control_rank_at(rows->control->head, i)))
            rows->time[i].in_calls_ms += passed;
}

void node_rows_setup(struct node_rows *rows, struct event_base *base,
                     const struct control_host *control)
{
    *rows = (struct node_rows){ .control = control };
    event_assign(&rows->timer, base, -1, EV_PERSIST, look, rows);
}

int node_rows_begin(struct node_rows *rows, struct worker *workers, int size, int counts)
{
    node_rows_free(rows);
    rows->workers = workers;
    rows->size = size;
    rows->time = calloc((size_t)size + 1, sizeof *rows->time);
    if (!rows->time)
        return -1;
    if (!counts || !rows->control->head)
        return 0;
    rows->looked_ms = clock_ms();
    event_add(&rows->timer, &(struct timeval){ 0, LOOK_MS * 1000 });
    return 0;
}

void node_rows_end(struct node_rows *rows)
{
    event_del(&rows->timer);
}

void node_rows_free(struct node_rows *rows)
{
    event_del(&rows->timer);
    free(rows->time);
    rows->time = NULL;
}

/* ---- Rows ---------------------------------------------------------------------------- */

/* Returns the stage of a rank, which is `seen` from the control page.  ctrun knows more about how a
 * worker ended. */
static enum rank_stage stage_of(const struct worker *worker, enum rank_stage seen)
{
    if (worker->running || worker->pid <= 0)
        return seen;
    if (worker_failed(worker))
        return worker->asked ? STAGE_STOPPED : STAGE_FAILED;
    return seen == STAGE_LEFT ? STAGE_LEFT : STAGE_DONE;
}

static char *last_lines(struct stream *stream)
{
    const char *at;
    size_t size = stream_last_lines(stream, LINES, &at);
    struct text lines = { 0 };

    if (size > LINES_BYTES) {
        at += size - LINES_BYTES;
        size = LINES_BYTES;
    }
    while (size > 0) {
        const char *const end = memchr(at, '\n', size);
        const size_t length = end ? (size_t)(end - at) : size;

        status_add_plain(&lines, at, length);
        if (end)
            text_add(&lines, &(char){ LINE_END }, 1);
        at += length + (end != NULL);
        size -= length + (end != NULL);
    }
    text_add(&lines, "", 1);
    return lines.data;
}

/* Writes the row of a rank.  `rank` is NULL if the node has no control page. */
static void node_rows_print_rank(const struct node_rows *rows, const struct job_snapshot *job,
                                 struct rank_snapshot *rank, int i, enum rank_stage seen,
                                 struct text *to)
{
    struct worker *worker = &rows->workers[i];
    char now[RANK_TEXT] = "";
    char *const out = last_lines(&worker->out), *const err = last_lines(&worker->err);
    struct text plain = { 0 };
    const struct process_snapshot process = rank ? rank->process : process_read(worker->pid);
    struct rank_time time = rows->time ? rows->time[i] : (struct rank_time){ 0, 0 };

    if (time.cpu_ms < (int64_t)(process.cpu_s * 1000))
        time.cpu_ms = (int64_t)(process.cpu_s * 1000);
    if (rows->time)
        rows->time[i] = time;

    if (rank)
        describe_rank(job, rank, now, sizeof now);
    status_add_plain(&plain, now, strlen(now));
    text_add(&plain, "", 1);
    if (plain.data && out && err)
        status_print_rank(to,
                          &(struct rank_row){ .rank = worker->rank,
                                              .local_rank = i,
                                              .pid = process.pid > 0 ? process.pid : worker->pid,
                                              .process = process.state > ' ' ? process.state : '-',
                                              .stage = stage_of(worker, seen),
                                              .calls = rank ? rank->calls : 0,
                                              .bytes = rank ? rank->bytes : 0,
                                              .in_calls_ms = time.in_calls_ms,
                                              .cpu_ms = time.cpu_ms,
                                              .now = plain.data,
                                              .out = out,
                                              .err = err });
    free(plain.data);
    free(out);
    free(err);
}

static void print_verdict(const struct verdict *verdict, const struct job_snapshot *job,
                          struct text *to)
{
    struct verdict_parts parts;
    char text[VERDICT_TEXT];

    verdict_text(verdict, job, text, sizeof text);
    verdict_parts(verdict, job, &parts);
    status_print_stuck(to, text,
                       &(struct stuck_row){ .key = parts.key,
                                            .waited_ms = (int64_t)(verdict->waited_ns / 1000000),
                                            .unnamed = parts.unnamed,
                                            .waiting = parts.waiting.data ? parts.waiting.data : "",
                                            .awaited = parts.awaited.data ? parts.awaited.data : "",
                                            .call = parts.call,
                                            .where = parts.where,
                                            .culprits = parts.culprits });
    verdict_parts_free(&parts);
}

void node_rows_print(struct node_rows *rows, const char *host, int restarts, struct text *to)
{
    enum rank_stage *const stage = calloc((size_t)rows->size + 1, sizeof *stage);
    struct job_snapshot job = { .rank = NULL };
    struct verdict_list list = { .count = 0 };
    const int has_page = rows->control->head && page_read(rows->control->memory, &job) == 0;

    status_print_node(to, host, (int)getpid(), restarts);
    for (int i = 0; stage && i < rows->size; i++)
        stage[i] = STAGE_RUNS;
    if (has_page && stage && job.ranks == rows->size) {
        process_read_all(&job);
        source_lines_known(&job);
        verdict_list_make(&list, &job, WAITS_NS); /* without memory there are fewer verdicts */
        rank_stages(&job, &list, stage);
    }
    if (has_page)
        ask_observers(rows->control->memory); /* their answers are for the next look */
    for (int i = 0; i < list.count; i++)
        print_verdict(&list.verdict[i], &job, to);
    for (int i = 0; stage && i < rows->size; i++)
        node_rows_print_rank(rows, &job, i < job.ranks ? &job.rank[i] : NULL, i, stage[i], to);
    verdict_list_free(&list);
    snapshot_free(&job);
    free(stage);
}
