/* SPDX-License-Identifier: Apache-2.0 */
/* ps.c - implements ctctl ps, which prints a line for each job. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/ctctl/ctctl.h"
#include "launcher/inspect/verdict_text.h"
#include "runtime/util/json_writer.h"

void job_ranks(const struct job_snapshot *job, char *text, size_t size)
{
    if (job->world > job->ranks)
        snprintf(text, size, "%d of %d ranks", job->ranks, job->world);
    else
        snprintf(text, size, "%d %s", job->ranks, job->ranks == 1 ? "rank" : "ranks");
}

void job_since(const struct job_snapshot *job, char *text, size_t size)
{
    struct timespec now;
    uint64_t ns;

    clock_gettime(CLOCK_REALTIME, &now);
    ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    describe_time(ns > (uint64_t)job->started_ns ? ns - (uint64_t)job->started_ns : 0, text, size);
}

void job_user(const struct job_snapshot *job, char *text, size_t size)
{
    const struct passwd *user = getpwuid(job->uid);

    if (user)
        snprintf(text, size, "%s", user->pw_name);
    else
        snprintf(text, size, "%u", (unsigned)job->uid);
}

static const char *ps_state_of(const struct job_snapshot *job, const struct ctctl_options *options)
{
    struct verdict_list list;
    const char *state;

    verdict_list_make(&list, job, (uint64_t)(options->after_s * 1e9));
    state = list.state;
    verdict_list_free(&list);
    return state;
}

static void as_json(struct json_text *json, const struct job_snapshot *job, const char *state)
{
    char user[64];

    job_user(job, user, sizeof user);
    json_open(json, NULL, '{');
    json_string(json, "run_id", job->run_id);
    json_number(json, "launcher", job->launcher);
    json_bool(json, "ctrun", !job->own_memory);
    json_string(json, "program", job->program);
    json_string(json, "user", user);
    json_number(json, "ranks", job->ranks);
    json_number(json, "world", job->world);
    json_number(json, "first_rank", job->base);
    json_number(json, "node", job->node);
    json_number(json, "nodes", job->nodes);
    json_string(json, "host", job->host);
    json_string(json, "generation", job->generation);
    json_number(json, "restarts", job->restarts);
    json_real(json, "started", (double)job->started_ns / 1e9);
    json_string(json, "state", state);
    json_close(json, '}');
}

static void as_line(const struct job_snapshot *job, const char *state, int width)
{
    char ranks[48], since[32], launcher[32], user[64] = "";

    job_ranks(job, ranks, sizeof ranks);
    job_since(job, since, sizeof since);
    job_user(job, user, sizeof user);
    snprintf(launcher, sizeof launcher, job->own_memory ? "(%d)" : "%d", (int)job->launcher);
    printf("%-*s %8s %-8s %-8s %-16s %8d %-9s %s\n", width, job->run_id, launcher, user, state,
           ranks, job->restarts, since, job->program);
}

static int ps_show_jobs(struct job_list *jobs, const struct ctctl_options *options)
{
    struct text out = { 0 };
    struct json_text json = { .to = &out, .gap = " " };
    int width = 3;

    for (int i = 0; i < jobs->count; i++)
        width = (int)strlen(jobs->job[i].run_id) > width ? (int)strlen(jobs->job[i].run_id) : width;
    if (options->json)
        json_open(&json, NULL, '[');
    else if (jobs->count == 0)
        printf("no job runs here\n");
    else
        printf("%-*s %8s %-8s %-8s %-16s %8s %-9s %s\n", width, "JOB", "CTRUN", "USER", "STATE",
               "RANKS", "RESTARTS", "SINCE", "PROGRAM");
    for (int i = 0; i < jobs->count; i++) {
        const char *state = ps_state_of(&jobs->job[i], options);

        if (options->json)
            as_json(&json, &jobs->job[i], state);
        else
            as_line(&jobs->job[i], state, width);
    }
    if (options->json) {
        json_close(&json, ']');
        text_add(&out, "\n", 1);
        fwrite(out.data, 1, out.used, stdout);
    }
    free(out.data);
    return NO_RANK_WAITS;
}

int command_ps(struct ctctl_options *options, char **words, int count)
{
    return jobs_run(options, words, count, ps_show_jobs);
}
