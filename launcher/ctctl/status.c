/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - implements ctctl status, which prints the verdicts on each job, and with -v also where
 * each rank is. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/ctctl/ctctl.h"
#include "launcher/inspect/ask.h"
#include "launcher/inspect/proc_info.h"
#include "launcher/inspect/rank_stage.h"
#include "launcher/inspect/source_lines.h"
#include "launcher/inspect/verdict_text.h"
#include "runtime/types/call_signature.h"
#include "runtime/util/clock.h"
#include "runtime/util/json_writer.h"

static const char *const states[] = { [CONTROL_STARTED] = "started",
                                      [CONTROL_INIT] = "init",
                                      [CONTROL_READY] = "ready",
                                      [CONTROL_LEFT] = "left",
                                      [CONTROL_OUTSIDE] = "init failed" };

/* ---- For people -------------------------------------------------------------- */

static void print_call(const struct job_snapshot *job, const struct group_snapshot *group)
{
    char call[200], time[32];

    describe_call(&group->now, group->now.root, call, sizeof call);
    describe_time(snapshot_age(job, group->now.begun_ns), time, sizeof time);
    printf("; in %s of group %s for %s", call, group->name, time);
    if (*group->where)
        printf(" at %s", group->where);
}

/* Returns 1 if the process has used no CPU time since its snapshot was taken. */
static int is_idle(const struct process_snapshot *process)
{
    return process_read(process->pid).cpu_s <= process->cpu_s;
}

/* Prints a line such as "  ! rank 3: blocking; pid 4310, S (futex), 12.3 s CPU; in no call; python
 * train.py". */
static void print_rank(const struct job_snapshot *job, const struct rank_snapshot *rank,
                       enum rank_stage stage, int tell_idle)
{
    const struct death_snapshot *death = snapshot_death_of(job, rank->rank);
    const struct process_snapshot *process = &rank->process;
    char words[160];
    int calls = 0;

    printf("  %c rank %d: %s; ", rank_stage_glyph(stage), rank->rank, rank_stage_name(stage));
    if (death) {
        describe_death(death, words, sizeof words);
        printf("%s (pid %d)\n", words, death->pid);
        return;
    }
    if (process->pid == 0) {
        printf("not started yet\n");
        return;
    }
    if (!process->state) {
        printf("pid %d is gone, and its place in the program is not known\n", (int)process->pid);
        return;
    }
    printf("pid %d, %c", (int)process->pid, process->state);
    if (*process->waits_in)
        printf(" (%s)", process->waits_in);
    printf(", %.1f s CPU%s", process->cpu_s,
           tell_idle && is_idle(process) ? " (none in the last second)" : "");
    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (rank->group[i].id && rank->group[i].now.phase == CONTROL_IN) {
            print_call(job, &rank->group[i]);
            calls++;
        }
    if (*rank->waiting_for)
        printf("; waits for %s", rank->waiting_for);
    else if (rank->state == CONTROL_INIT)
        printf("; in %sinit_process_group()", rank->observer == OBSERVER_NONE ? "ct_" : "");
    else if (calls == 0 && rank->state == CONTROL_READY)
        printf("; in no call");
    if (*rank->main_place)
        printf("; at %s", rank->main_place);
    else if (python_line(rank, words, sizeof words))
        printf("; in Python at %s", words);
    printf("; %s\n", rank->command);
}

static int has_group(const struct rank_snapshot *rank)
{
    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (rank->group[i].id)
            return 1;
    return 0;
}

/* Returns 1 if a rank has used libct: it called ct_init_process_group(), or it created a group
 * without that call (ct_create_group()). */
static int uses_libct(const struct job_snapshot *job)
{
    for (int i = 0; i < job->ranks; i++)
        if (job->own_memory || job->rank[i].state != CONTROL_STARTED || has_group(&job->rank[i]))
            return 1;
    return 0;
}

static int is_python(const struct job_snapshot *job)
{
    for (int i = 0; i < job->ranks; i++)
        if (python_is_it(&job->rank[i].process))
            return 1;
    return 0;
}

/* Prints the ranks, problems first. */
static void print_ranks(const struct job_snapshot *job, const struct verdict_list *list)
{
    enum rank_stage *const stage = calloc((size_t)job->ranks + 1, sizeof *stage);

    if (stage)
        rank_stages(job, list, stage);
    for (int order = 0; order < STAGES; order++)
        for (int i = 0; i < job->ranks && stage; i++)
            if (rank_stage_order(stage[i]) == order)
                print_rank(job, &job->rank[i], stage[i], !uses_libct(job));
    free(stage);
}

static void print_job(const struct job_snapshot *job, const struct verdict_list *list,
                      const struct ctctl_options *options)
{
    char ranks[48], since[32], user[64], text[VERDICT_TEXT];

    job_ranks(job, ranks, sizeof ranks);
    job_since(job, since, sizeof since);
    job_user(job, user, sizeof user);
    printf("job %s (%s %d, %s, %s, for %s%s%s): %s\n", job->run_id,
           job->own_memory ? "started by pid" : "ctrun", (int)job->launcher, job->program, ranks,
           since, job->uid != geteuid() ? ", of " : "", job->uid != geteuid() ? user : "",
           list->state);
    for (int i = 0; i < list->count; i++) {
        verdict_text(&list->verdict[i], job, text, sizeof text);
        printf("  %s\n", text);
    }
    if (!uses_libct(job))
        printf("  %s; its processes:\n",
               ask_is_possible(job) ? "it shows no group yet"
               : is_python(job)
                   ? "its Python has not loaded the ctrun wheel, which shows the calls of PyTorch"
                   : "it does not use libct, or not yet");
    else if (list->count == 0)
        printf("  no rank has waited for %g s\n", options->after_s);
    /* waits 1 s, since the CPU time used in 1 s shows whether a rank computes */
    if (!uses_libct(job))
        poll(NULL, 0, time_left_ms((int64_t)(job->now_ns / 1000000) + 1000, 1000));
    if (options->verbose || !uses_libct(job))
        print_ranks(job, list);
}

/* ---- For programs ------------------------------------------------------------ */

static void json_call(struct json_text *json, const struct job_snapshot *job,
                      const struct group_snapshot *group)
{
    const struct call_snapshot *call = &group->now;
    char words[160];

    describe_call(call, call->root, words, sizeof words);
    json_open(json, NULL, '{');
    json_string(json, "group", group->name);
    json_number(json, "group_rank", group->rank);
    json_number(json, "group_size", group->size);
    json_number(json, "begun", (long)group->begun);
    json_number(json, "done", (long)group->done);
    json_bool(json, "in_call", call->phase == CONTROL_IN);
    json_string(json, "call", call->begun_ns ? words : NULL);
    json_string(json, "operation", call->begun_ns ? operation_name(call->operation) : NULL);
    json_number(json, "sequence", (long)call->seq);
    if (call->phase == CONTROL_IN)
        json_real(json, "for_seconds", (double)snapshot_age(job, call->begun_ns) / 1e9);
    json_string(json, "where", *group->where ? group->where : NULL);
    json_close(json, '}');
}

static void json_rank(struct json_text *json, const struct job_snapshot *job,
                      const struct rank_snapshot *rank)
{
    const char letter[2] = { rank->process.state, '\0' };
    char words[160];

    json_open(json, NULL, '{');
    json_number(json, "rank", rank->rank);
    json_number(json, "pid", rank->process.pid);
    json_number(json, "worker", rank->worker);
    json_string(json, "process", *letter ? letter : NULL);
    json_string(json, "waits_in", *rank->process.waits_in ? rank->process.waits_in : NULL);
    json_real(json, "cpu_seconds", rank->process.cpu_s);
    json_string(json, "state", states[rank->state]);
    json_string(json, "waiting_for", *rank->waiting_for ? rank->waiting_for : NULL);
    json_string(json, "python",
                *rank->main_place                        ? rank->main_place
                : python_line(rank, words, sizeof words) ? words
                                                         : NULL);
    json_string(json, "command", rank->command);
    json_open(json, "groups", '[');
    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (rank->group[i].id)
            json_call(json, job, &rank->group[i]);
    json_close(json, ']');
    json_close(json, '}');
}

static void json_job(struct json_text *json, const struct job_snapshot *job,
                     const struct verdict_list *list)
{
    json_open(json, NULL, '{');
    json_string(json, "run_id", job->run_id);
    json_number(json, "launcher", job->launcher);
    json_bool(json, "ctrun", !job->own_memory);
    json_string(json, "program", job->program);
    json_string(json, "host", job->host);
    json_number(json, "world", job->world);
    json_string(json, "state", list->state);
    json_open(json, "sentences", '[');
    for (int i = 0; i < list->count; i++)
        verdict_json(json, &list->verdict[i], job, "for_seconds");
    json_close(json, ']');
    json_open(json, "ranks", '[');
    for (int i = 0; i < job->ranks; i++)
        json_rank(json, job, &job->rank[i]);
    json_close(json, ']');
    json_close(json, '}');
}

/* ------------------------------------------------------------------------------- */

static int status_show_jobs(struct job_list *jobs, const struct ctctl_options *options)
{
    struct text out = { 0 };
    struct json_text json = { .to = &out, .gap = " " };
    int stuck = 0;

    if (options->json)
        json_open(&json, NULL, '[');
    else if (jobs->count == 0)
        printf("no job runs here\n");
    for (int i = 0; i < jobs->count; i++) {
        struct job_snapshot *job = &jobs->job[i];
        struct verdict_list list;

        if (!job_is_selected(job, options))
            continue;
        source_lines(job);
        if (verdict_list_make(&list, job, (uint64_t)(options->after_s * 1e9)) < 0)
            fprintf(stderr, "ctctl: job %s: out of memory\n", job->run_id);
        stuck += list.stuck;
        if (options->json)
            json_job(&json, job, &list);
        else
            print_job(job, &list, options);
        verdict_list_free(&list);
    }
    if (options->json) {
        json_close(&json, ']');
        text_add(&out, "\n", 1);
        fwrite(out.data, 1, out.used, stdout);
    }
    free(out.data);
    return stuck > 0 ? RANKS_WAIT : NO_RANK_WAITS;
}

int command_status(struct ctctl_options *options, char **words, int count)
{
    return jobs_run(options, words, count, status_show_jobs);
}
