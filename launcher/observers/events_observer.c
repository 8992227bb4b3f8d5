/* SPDX-License-Identifier: Apache-2.0 */
/* events_observer.c - writes the events of the job to the file of --events=FILE, as one JSON object
 * per line (docs/events.md).
 *
 * Each event is appended by one write(), so the lines of several nodes that share the file stay
 * whole.  If the disk is full, lines are lost, but the job continues. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "launcher/inspect/verdict_text.h"
#include "launcher/job/job.h"
#include "launcher/observers/observers.h"
#include "launcher/observers/straggler_observer.h"
#include "launcher/report/error_file.h"
#include "runtime/util/json_writer.h"
#include "runtime/util/log.h"
#include "runtime/util/signal_name.h"

#define MOST_WORDS 256    /* most words of argv that are written */
#define LONGEST_TEXT 8192 /* most bytes of an argv word or an error that are written */

struct events {
    const struct job *job;
    int fd;           /* -1 without --events; the hooks then do nothing */
    int torn, failed; /* true if the last line is incomplete; true if a failure was logged */
    struct text line;
};

/* ---- A line ----------------------------------------------------------------- */

static void events_begin(struct events *events, struct json_text *json, const char *event)
{
    const struct job *job = events->job;
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
    json_string(json, "run_id", job->meet.run_id);
    json_number(json, "node", job->plan.generation ? job->plan.node : job->options->node_rank);
    json_string(json, "host", host);
}

/* Closes the JSON object and writes the line.  If the last line was cut short, a newline precedes
 * this line. */
static void events_end(struct events *events, struct json_text *json)
{
    const char *data;
    ssize_t wrote;
    size_t size;

    json_close(json, '}');
    text_add(&events->line, "\n\n", 2);
    data = events->line.data;
    size = events->line.used - 1;
    if (events->torn) { /* moves the second newline to the front */
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
    log_line(LOG_WARN, "--events=%s: %s; events are lost, but the job continues",
             events->job->options->events, wrote < 0 ? strerror(errno) : "a line was cut short");
}

/* Adds at most LONGEST_TEXT bytes of the text, since a longer text could fill the disk. */
static void add_cut(struct json_text *json, const char *name, const char *text)
{
    json_bytes(json, name, text, strnlen(text, LONGEST_TEXT));
}

/* ---- The events ------------------------------------------------------------- */

static int events_open(void *state, struct job *job)
{
    const char *const file = job->options->events;
    struct events *events = state;

    *events = (struct events){ .job = job, .fd = -1 };
    if (!file)
        return 0;
    /* Without O_NONBLOCK, open() of a FIFO without a reader would block forever. */
    events->fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (events->fd >= 0)
        return 0;
    log_line(LOG_ERROR, "--events=%s: %s", file,
             errno == ENXIO ? "no process reads that FIFO" : strerror(errno));
    return 1;
}

static int events_job_began(void *state, struct job *job)
{
    char *const *word = job->options->program;
    struct events *events = state;
    struct json_text json;

    if (events->fd < 0)
        return 0;
    events_begin(events, &json, "job_start");
    json_string(&json, "version", CT_VERSION);
    json_number(&json, "pid", getpid());
    json_number(&json, "workers", job->size);
    json_open(&json, "argv", '[');
    for (int i = 0; word[i] && i < MOST_WORDS; i++)
        add_cut(&json, NULL, word[i]);
    json_close(&json, ']');
    events_end(events, &json);
    return 0;
}

static void events_job_ended(struct events *events, const struct job_end *end)
{
    const struct worker *culprit = end->round.first_failed;
    struct json_text json;

    events_begin(events, &json, "job_end");
    json_number(&json, "code", end->code);
    if (culprit) {
        json_open(&json, "culprit", '{');
        json_number(&json, "rank", culprit->rank);
        json_number(&json, "pid", culprit->pid);
        json_close(&json, '}');
    } else {
        json_null(&json, "culprit");
    }
    if (*end->fault)
        add_cut(&json, "fault", end->fault);
    else
        json_null(&json, "fault");
    events_end(events, &json);
}

static void events_close(void *state, const struct job_end *end)
{
    struct events *events = state;

    if (events->fd < 0)
        return;
    events_job_ended(events, end);
    close(events->fd);
    events->fd = -1;
    free(events->line.data);
}

static void events_restarted(struct events *events, const struct job *job)
{
    struct json_text json;

    events_begin(events, &json, "restart");
    json_number(&json, "restarts", job->plan.restarts);
    json_number(&json, "max_restarts", job->options->max_restarts.most);
    events_end(events, &json);
}

static int events_round_begins(void *state, struct job *job, struct round *round)
{
    struct events *events = state;
    struct json_text json;

    (void)round;
    if (events->fd < 0)
        return 0;
    if (job->round.restarted)
        events_restarted(events, job);
    events_begin(events, &json, "round_begin");
    json_string(&json, "generation", job->plan.generation);
    json_number(&json, "restarts", job->plan.restarts);
    json_number(&json, "nodes", job->plan.nodes);
    json_number(&json, "world", job->plan.world);
    json_number(&json, "first_rank", job->plan.base);
    events_end(events, &json);
    return 0;
}

static void add_worker(struct json_text *json, const struct worker *worker)
{
    json_number(json, "rank", worker->rank);
    json_number(json, "local_rank", worker->local_rank);
    json_number(json, "pid", worker->pid);
}

static void events_worker_started(void *state, const struct worker *worker)
{
    struct events *events = state;
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

static void events_worker_ended(void *state, const struct failed_round *round,
                                const struct worker *worker, int its_own)
{
    struct events *events = state;
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
    if (worker->fault.code) /* the exit code does not show the fault */
        snprintf(detail, sizeof detail, "%s%s%s", worker->fault.what,
                 *worker->fault.detail ? ": " : "", worker->fault.detail);
    json_string(&json, "detail", *detail ? detail : NULL);
    add_error(&json, round, worker);
    events_end(events, &json);
}

static void events_stopping(void *state, int signal, const char *why)
{
    struct events *events = state;
    struct json_text json;
    char name[32];

    if (events->fd < 0)
        return;
    events_begin(events, &json, "stop");
    json_string(&json, "signal", signal_name(signal, name, sizeof name));
    add_cut(&json, "why", why);
    events_end(events, &json);
}

static void events_stalled(void *state, const struct verdict_list *list)
{
    struct events *events = state;
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

static void events_slow(void *state, const struct slow_rank *slow, const char *node)
{
    struct events *events = state;
    struct json_text json;

    (void)node;
    if (events->fd < 0)
        return;
    events_begin(events, &json, "slow_rank");
    number_or_null(&json, "rank", slow->rank);
    number_or_null(&json, "of_node", slow->node);
    json_number(&json, "seconds", shares_seconds(events->job));
    json_number(&json, "in_collectives", slow->share);
    json_number(&json, "others_least", slow->others_least);
    json_number(&json, "others_most", slow->others_most);
    events_end(events, &json);
}

static void events_member(void *state, int node, int there)
{
    struct events *events = state;
    struct json_text json;

    if (events->fd < 0)
        return;
    events_begin(events, &json, there ? "node_joined" : "node_lost");
    json_number(&json, "who", node);
    events_end(events, &json);
}

const struct job_observer events_observer = { .bytes = sizeof(struct events),
                                              .open = events_open,
                                              .job_began = events_job_began,
                                              .close = events_close,
                                              .round_begins = events_round_begins,
                                              .worker_started = events_worker_started,
                                              .worker_ended = events_worker_ended,
                                              .stopping = events_stopping,
                                              .member = events_member,
                                              .slow = events_slow,
                                              .stalled = events_stalled };
