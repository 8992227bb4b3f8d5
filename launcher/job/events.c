/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - --events=FILE: each event is one line, appended by one write(), so that
 * the lines of several nodes stay whole.  A disk that fills up costs lines, not the job. */
#include "launcher/job/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "launcher/inspect/verdict_text.h"
#include "launcher/report/error_file.h"
#include "runtime/util/json_writer.h"
#include "runtime/util/log.h"
#include "runtime/util/signal_name.h"

#define MOST_WORDS 256    /* of argv */
#define LONGEST_TEXT 8192 /* of one of them, of an error */

int events_open(struct events *events, const struct options *options)
{
    *events = (struct events){ .options = options, .fd = -1, .run_id = "" };
    events->plan.node = options->node_rank;
    if (!options->events)
        return 0;
    /* O_NONBLOCK: open() of a FIFO without a reader would block for ever. */
    events->fd =
        open(options->events, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (events->fd >= 0)
        return 0;
    log_line(LOG_ERROR, "--events=%s: %s", options->events,
             errno == ENXIO ? "no process reads that FIFO" : strerror(errno));
    return -1;
}

void events_close(struct events *events)
{
    if (events->fd >= 0)
        close(events->fd);
    events->fd = -1;
    free(events->line.data);
    events->line = (struct text){ 0 };
}

/* ---- A line ----------------------------------------------------------------- */

static void events_begin(struct events *events, struct json_text *json, const char *event)
{
    char host[256] = "", time[64], stamp[96];
    struct timeval now;
    struct tm day;

    gettimeofday(&now, NULL);
    strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &day));
    snprintf(stamp, sizeof stamp, "%s.%06ldZ", time, (long)now.tv_usec);
    gethostname(host, sizeof host - 1);
    events->line.used = 0;
    *json = (struct json_text){ .to = &events->line, .gap = "" };
    json_open(json, NULL, '{');
    json_string(json, "event", event);
    json_string(json, "time", stamp);
    json_string(json, "run_id", events->run_id);
    json_number(json, "node", events->plan.node);
    json_string(json, "host", host);
}

/* Only half of the last line was written: this one begins with a newline. */
static void events_end(struct events *events, struct json_text *json)
{
    const char *data;
    ssize_t wrote;
    size_t size;

    json_close(json, '}');
    text_add(&events->line, "\n\n", 2);
    data = events->line.data;
    size = events->line.used - 1;
    if (events->torn) { /* the second newline goes in front */
        memmove(events->line.data + 1, events->line.data, size);
        events->line.data[0] = '\n';
        size++;
    }
    do
        wrote = write(events->fd, data, size);
    while (wrote < 0 && errno == EINTR);
    if (wrote >= 0)
        events->torn = (size_t)wrote < size && (wrote > 0 || events->torn);
    if (wrote == (ssize_t)size || events->failed)
        return;
    events->failed = 1;
    log_line(LOG_WARN, "--events=%s: %s; events are lost, the job goes on", events->options->events,
             wrote < 0 ? strerror(errno) : "a line was cut short");
}

/* Without an end it could fill the disk by itself. */
static void add_cut(struct json_text *json, const char *name, const char *text)
{
    json_bytes(json, name, text, strnlen(text, LONGEST_TEXT));
}

/* ---- The events ------------------------------------------------------------- */

void events_job_started(struct events *events, const char *run_id, int size)
{
    char **word = events->options->program;
    struct json_text json;

    events->run_id = run_id;
    if (events->fd < 0)
        return;
    events_begin(events, &json, "job_start");
    json_string(&json, "version", CT_VERSION);
    json_number(&json, "pid", getpid());
    json_number(&json, "workers", size);
    json_open(&json, "argv", '[');
    for (int i = 0; word[i] && i < MOST_WORDS; i++)
        add_cut(&json, NULL, word[i]);
    json_close(&json, ']');
    events_end(events, &json);
}

void events_job_ended(struct events *events, int code, const struct failed_round *round,
                      const char *fault)
{
    struct json_text json;

    if (events->fd < 0)
        return;
    events_begin(events, &json, "job_end");
    json_number(&json, "code", code);
    if (round->first_failed) {
        json_open(&json, "culprit", '{');
        json_number(&json, "rank", round->first_failed->rank);
        json_number(&json, "pid", round->first_failed->pid);
        json_close(&json, '}');
    } else {
        json_null(&json, "culprit");
    }
    if (*fault)
        add_cut(&json, "fault", fault);
    else
        json_null(&json, "fault");
    events_end(events, &json);
}

void events_round_began(struct events *events, const struct plan *plan)
{
    struct json_text json;

    events->plan = *plan;
    if (events->fd < 0)
        return;
    events_begin(events, &json, "round_begin");
    json_string(&json, "generation", plan->generation);
    json_number(&json, "restarts", plan->restarts);
    json_number(&json, "nodes", plan->nodes);
    json_number(&json, "world", plan->world);
    json_number(&json, "first_rank", plan->base);
    events_end(events, &json);
}

void events_restarted(struct events *events, const struct plan *plan, int most)
{
    struct json_text json;

    if (events->fd < 0)
        return;
    events_begin(events, &json, "restart");
    json_number(&json, "restarts", plan->restarts);
    json_number(&json, "max_restarts", most);
    events_end(events, &json);
}

static void add_worker(struct json_text *json, const struct worker *worker)
{
    json_number(json, "rank", worker->rank);
    json_number(json, "local_rank", worker->local_rank);
    json_number(json, "pid", worker->pid);
}

void events_worker_started(struct events *events, const struct worker *worker)
{
    struct json_text json;

    if (events->fd < 0)
        return;
    events_begin(events, &json, "worker_start");
    add_worker(&json, worker);
    events_end(events, &json);
}

static void add_error(struct json_text *json, const struct failed_round *round,
                      const struct worker *worker)
{
    struct error_json error;
    char path[PATH_MAX];

    run_folder_error_file(round->files, worker->attempt, worker->local_rank, path, sizeof path);
    error_json_read(&error, worker_failed(worker) ? path : "");
    if (error.text)
        add_cut(json, "error", error.text);
    else
        json_null(json, "error");
    error_json_free(&error);
}

void events_worker_ended(struct events *events, const struct failed_round *round,
                         const struct worker *worker, int its_own)
{
    const int exited = worker->how == CLD_EXITED;
    char name[32], detail[800], why[200];
    struct json_text json;

    if (events->fd < 0)
        return;
    events_begin(events, &json, "worker_end");
    add_worker(&json, worker);
    if (exited)
        json_number(&json, "code", worker->code);
    else
        json_null(&json, "code");
    json_string(&json, "signal", exited ? NULL : signal_name(worker->code, name, sizeof name));
    json_string(&json, "cause",
                worker->asked            ? "stopped"
                : !worker_failed(worker) ? "done"
                : its_own                ? "itself"
                                         : "because");
    json_bool(&json, "oom",
              !exited && worker->code == SIGKILL && !was_killed(worker)
                  && oom_killed(round->oom, why, sizeof why));
    json_bool(&json, "core", worker->how == CLD_DUMPED);
    report_detail(round, worker, detail, sizeof detail);
    if (worker->fault.code) /* which the code does not tell */
        snprintf(detail, sizeof detail, "%s%s%s", worker->fault.what,
                 *worker->fault.detail ? ": " : "", worker->fault.detail);
    json_string(&json, "detail", *detail ? detail : NULL);
    add_error(&json, round, worker);
    events_end(events, &json);
}

void events_stopping(struct events *events, int signal, const char *why)
{
    struct json_text json;
    char name[32];

    if (events->fd < 0)
        return;
    events_begin(events, &json, "stop");
    json_string(&json, "signal", signal_name(signal, name, sizeof name));
    add_cut(&json, "why", why);
    events_end(events, &json);
}

void events_stalled(struct events *events, const struct verdict_list *list)
{
    struct json_text json;

    if (events->fd < 0)
        return;
    events_begin(events, &json, "stall");
    json_open(&json, "sentences", '[');
    for (int i = 0; i < list->count; i++)
        verdict_json(&json, &list->verdict[i], list->job, "seconds");
    json_close(&json, ']');
    events_end(events, &json);
}

static void number_or_null(struct json_text *json, const char *name, int value)
{
    if (value >= 0)
        json_number(json, name, value);
    else
        json_null(json, name);
}

void events_slow(struct events *events, const struct slow_rank *slow, int seconds)
{
    struct json_text json;

    if (events->fd < 0)
        return;
    events_begin(events, &json, "slow_rank");
    number_or_null(&json, "rank", slow->rank);
    number_or_null(&json, "of_node", slow->node);
    json_number(&json, "seconds", seconds);
    json_number(&json, "in_collectives", slow->share);
    json_number(&json, "others_least", slow->others_least);
    json_number(&json, "others_most", slow->others_most);
    events_end(events, &json);
}

void events_node(struct events *events, int node, int there)
{
    struct json_text json;

    if (events->fd < 0)
        return;
    events_begin(events, &json, there ? "node_joined" : "node_lost");
    json_number(&json, "who", node);
    events_end(events, &json);
}
