/* SPDX-License-Identifier: Apache-2.0 */
/* events_torchrun.c - --event-log-handler=console: torchrun's own events, its names, its
 * order and its oddities: "timestamp" is always 0, "metadata" in the metadata is JSON in
 * a string, and the agent has SUCCEEDED when its workers failed. */
#include "launcher/events/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/report/error_file.h"
#include "launcher/report/report_torchrun.h"
#include "runtime/util/clock.h"
#include "runtime/util/json_writer.h"

struct happening {
    const char *state;
    const struct worker *worker; /* NULL: the agent's */
    const char *raw_error;       /* JSON; NULL: none */
    int in_a_round;              /* group_rank and group_world_size are known */
    double duration_ms;          /* < 0: null */
};

static void add_list(struct json_text *json, const char *name, int known, int value)
{
    json_open(json, name, '[');
    if (known)
        json_number(json, NULL, value);
    else
        json_null(json, NULL);
    json_close(json, ']');
}

/* torchrun knows exit code and pid of those that failed only. */
static void add_inner(struct json_text *json, const struct events *events,
                      const struct happening *event)
{
    const struct worker *worker = event->worker;
    const int failed = worker && !strcmp(event->state, "FAILED");

    json_open(json, NULL, '{');
    if (event->in_a_round)
        json_number(json, "group_world_size", events->plan.nodes);
    else
        json_null(json, "group_world_size");
    json_string(json, "entry_point", events->options->program[0]);
    if (worker) {
        add_list(json, "local_rank", 1, worker->local_rank);
        add_list(json, "role_rank", 1, events->plan.role_base + worker->local_rank);
        add_list(json, "role_world_size", 1, events->plan.role_world);
        add_list(json, "exit_code", failed, failed ? report_exit_code(worker) : 0);
        add_list(json, "worker_pid", failed, failed ? (int)worker->pid : 0);
    }
    json_close(json, '}');
}

static void add_metadata(struct json_text *json, const struct events *events,
                         const struct happening *event)
{
    struct text inner = { 0 };
    struct json_text in = { .to = &inner, .gap = " " };
    char host[256] = "", pid[16];

    add_inner(&in, events, event);
    gethostname(host, sizeof host - 1);
    json_open(json, "metadata", '{');
    json_string(json, "run_id", events->run_id);
    if (event->worker)
        json_number(json, "global_rank", event->worker->rank);
    else
        json_null(json, "global_rank");
    if (event->in_a_round)
        json_number(json, "group_rank", events->plan.node);
    else
        json_null(json, "group_rank");
    snprintf(pid, sizeof pid, "%d", event->worker ? (int)event->worker->pid : 0);
    json_string(json, "worker_id", event->worker ? pid : NULL);
    json_string(json, "role", events->options->role);
    json_string(json, "hostname", host);
    json_string(json, "state", event->state);
    json_number(json, "total_run_time", (long)((clock_ms() - events->since_ms) / 1000));
    json_string(json, "rdzv_backend", events->dynamic ? "c10d" : "static");
    json_string(json, "raw_error", event->raw_error);
    json_bytes(json, "metadata", inner.data ? inner.data : "", inner.used);
    json_number(json, "agent_restarts", events->plan.restarts);
    if (event->duration_ms >= 0)
        json_real(json, "duration_ms", event->duration_ms);
    else
        json_null(json, "duration_ms");
    json_close(json, '}');
    free(inner.data);
}

static void tell(struct events *events, const struct happening *event)
{
    struct json_text json = { .to = &events->line, .gap = " " };
    char name[64];

    snprintf(name, sizeof name, "torchelastic.worker.status.%s", event->state);
    events->line.used = 0;
    json_open(&json, NULL, '{');
    json_string(&json, "name", name);
    json_string(&json, "source", event->worker ? "WORKER" : "AGENT");
    json_number(&json, "timestamp", 0);
    add_metadata(&json, events, event);
    json_close(&json, '}');
    text_add(&events->line, "\n", 1);
    report_show(&events->line);
}

void console_round_began(struct events *events)
{
    const int first = events->plan.restarts == 0;
    const double waited = first ? (double)(clock_ms() - events->since_ms) : 0;

    tell(events, &(struct happening){ "RENDEZVOUS", NULL, NULL, 0, waited });
    tell(events, &(struct happening){ "ASSIGN_WORKER_RANKS", NULL, NULL, 0, 0 });
}

void console_worker(struct events *events, const struct worker *worker, const char *state,
                    const char *raw_error)
{
    tell(events, &(struct happening){ state, worker, raw_error, 1, -1 });
}

static void worker_ended(struct events *events, int code, const struct failed_round *round,
                         const struct worker *worker)
{
    struct error_json error;
    char path[PATH_MAX];

    if (!worker_failed(worker)) {
        console_worker(events, worker, code == 0 ? "SUCCEEDED" : "TERMINATED", NULL);
        return;
    }
    run_folder_error_file(round->files, worker->attempt, worker->local_rank, path, sizeof path);
    error_json_read(&error, path);
    console_worker(events, worker, "FAILED",
                   error.state == ERROR_READ ? error.bytes : "{\"message\": \"<NONE>\"}");
    error_json_free(&error);
}

void console_ended(struct events *events, int code, const struct failed_round *round,
                   const char *fault)
{
    const int by_workers = code == 0 || round->culprit;

    for (int i = 0; i < round->size; i++)
        if (round->workers[i].pid > 0 && events->plan.world > 0)
            worker_ended(events, code, round, &round->workers[i]);
    tell(events, &(struct happening){ by_workers ? "SUCCEEDED" : "FAILED", NULL,
                                      by_workers ? NULL : fault, events->plan.world > 0, -1 });
}
