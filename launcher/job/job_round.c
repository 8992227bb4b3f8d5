/* SPDX-License-Identifier: Apache-2.0 */
/* job_round.c - starts the workers of a round, and cleans up when the last worker has ended.
 *
 * The failure of a round is logged when it is known whether a restart follows.  That is at the
 * start of the next round or in job_finish().  A ctrun that can't start all workers of a round
 * kills the workers that it did start, and tells the coordinator. */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcher/job/job_internal.h"
#include "launcher/job/no_effect.h"
#include "launcher/report/placement_report.h"
#include "launcher/util/progress_line.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define PREFIX_ROOM 12 /* columns for a prefix like "[4194303] " */
#define ALIVE_MS 1000  /* the period of heartbeats that other nodes expect */

/* ---- What failed, and what follows -------------------------------------- */

struct failed_round job_failed_round(struct job *job, struct worker *first_failed)
{
    return (struct failed_round){ job->workers,
                                  job->size,
                                  first_failed,
                                  &job->program,
                                  &job->folder,
                                  &job->oom,
                                  job->options->short_report,
                                  NULL };
}

/* Logs what failed in the round.  If restarts is not 0, the line also says that this restart
 * follows. */
static void say_what_failed(struct job *job, int restarts)
{
    char next[64] = "", words[NODE_TEXT];

    if (restarts > 0)
        snprintf(next, sizeof next, " Starting restart %d of %d.", restarts,
                 job->options->max_restarts.most);
    if (*job->round.elsewhere) { /* the first failure was on another node */
        const int node = job->plan.generation ? job->plan.node : job->options->node_rank;
        const int is_said = job->options->surroundings.one_output && node > 0;

        log_line(is_said ? LOG_INFO : LOG_ERROR, "%s.%s%s", job->round.elsewhere,
                 job->plan.world > 0 && job->size > 0 ? " ctrun stopped the workers here." : "",
                 next);
    } else if (job->round.first_failed) {
        struct failed_round round = job_failed_round(job, job->round.first_failed);
        const struct root_cause root = root_graph_find(&job->round.graph);
        const uint64_t stopped_at = job_stopped_at(job, job->round.first_failed);

        if (root.kind > ROOT_EXITED && root.rank == job->round.first_failed->rank
            && !job->options->on_failure.go_on) { /* else the report says how the worker ended */
            root_graph_words(&job->round.graph, &root, words, sizeof words);
            round.root_cause = words;
        }
        if (stopped_at) /* not a failure: the ranks stopped because they were asked to */
            log_line(LOG_WARN,
                     "the ranks stopped at call %llu of ct_should_stop() and chose exit code %d.%s",
                     (unsigned long long)stopped_at, job->round.first_failed->code, next);
        else
            report_failure(&round, next);
        job->reported = restarts == 0 ? job->round.first_failed : NULL;
    }
    if (job->round.first_failed)
        oom_watch_reset(&job->oom);
    job->round.first_failed = NULL;
    job->round.elsewhere[0] = 0;
}

/* Logs that a node joined, left or failed.  Called if the new round is not a restart. */
static void say_what_changed(struct job *job)
{
    if (*job->round.elsewhere)
        log_line(LOG_WARN, "%s; the workers%s start again, %d in all", job->round.elsewhere,
                 job->size > 0 ? " here" : "", job->plan.world);
    job->round.first_failed = NULL;
    job->round.elsewhere[0] = 0;
}

/* ---- End ---------------------------------------------------------------- */

/* Kills the processes that are left of the round, and frees what the round used. */
static void clear_workers(struct job *job)
{
    int64_t deadline;
    int left;

    event_del(&job->grace);
    event_del(&job->spare);
    job_stop_end(job);
    JOB_TELL(job, round_ended, job);
    for (int i = 0; i < job->size; i++)
        worker_kill_rest(&job->workers[i], &job->guard);
    deadline = clock_ms() + 200;
    for (int i = 0; i < job->size; i++)
        worker_clear(&job->workers[i], deadline);
    left = job->plan.generation
               ? subreaper_kill(&job->subreaper, job->guard.pid, job->plan.generation)
               : 0;
    if (left > 0)
        log_line(LOG_WARN, "%d of the processes that workers started did not end after SIGKILL",
                 left);
}

/* Returns 1 if each worker finished its program.  Ignores workers that failed while the others
 * continued (--on-failure=continue). */
static int round_all_are_done(const struct job *job)
{
    for (int i = 0; i < job->size; i++) {
        const struct worker *worker = &job->workers[i];

        if (!worker->lost
            && (worker->pid <= 0 || worker_failed(worker) || worker->asked
                || job_stopped_at(job, worker)))
            return 0;
    }
    return 1;
}

static void tell_end(struct job *job)
{
    const struct round_end end = { job_code_of_stopped(job), round_all_are_done(job) };

    job->nodes->ops->ended(job->nodes, &end);
}

void job_drained(struct job *job)
{
    if (--job->watch.draining == 0)
        tell_end(job);
}

/* Calls drain() of the observers, so that they write what they know of the round.  The node's round
 * is over when each of them has called job_drained(). */
static void drain(struct job *job)
{
    job->watch.draining = 1;
    for (int i = 0; i < job->watch.count; i++)
        if (job->watch.rows[i]->drain) {
            job->watch.draining++;
            job->watch.rows[i]->drain(job->watch.states[i], job);
        }
    job_drained(job);
}

void job_end_round(struct job *job)
{
    clear_workers(job);
    drain(job);
}

/* ---- Start ------------------------------------------------------------- */

/* Returns the number of columns that a worker's progress bar may have on ctrun's terminal, after
 * the prefix.  Returns 0 if there shall be no bar, for example with --quiet. */
static int progress_room_of_workers(void)
{
    const int room = log_wants(LOG_WARN) ? progress_room(STDERR_FILENO) : 0;

    return room > PREFIX_ROOM ? room - PREFIX_ROOM : 0;
}

static struct round round_of(struct job *job)
{
    return (struct round){ .size = job->size,
                           .base = job->plan.base,
                           .world = job->plan.world,
                           .restarts = job->plan.restarts,
                           .role_base = job->plan.role_base,
                           .role_world = job->plan.role_world,
                           .node = job->plan.node,
                           .nodes = job->plan.nodes,
                           .own_store = job->meet.own_store,
                           .address = job->plan.address,
                           .port = job->plan.port,
                           .run_id = job->meet.run_id,
                           .generation = job->plan.generation,
                           .secret = &job->meet.policy.secret,
                           .folder = &job->folder,
                           .descriptors = &job->descriptors,
                           .placement = job->placement,
                           .progress_room = progress_room_of_workers(),
                           .inherited = { .trace_memory = -1, .pmi = -1 } };
}

/* Returns 1 if a signal that stops ctrun is pending.  The start of thousands of workers takes
 * seconds, so such a signal ends the start early. */
static int is_told_to_stop(const struct job *job)
{
    sigset_t pending, ours;

    return sigpending(&pending) == 0 && sigandset(&ours, &pending, &job->options->signals.set) == 0
           && !sigisemptyset(&ours);
}

/* Starts the workers.  Returns 0, or ctrun's exit code after an error.  Also returns 0 if a signal
 * came before all workers were started.  The event loop handles that signal. */
static int start_workers(struct job *job, struct round *round)
{
    int64_t spoke = clock_ms();
    struct worker_env env;
    int code = 0;

    if (run_folder_next(&job->folder) != 0
        || output_round(&job->output, job->plan.base, job->plan.world, job->size) < 0)
        return 1;
    control_host_open(&job->control, &job->plan, job->size, job_name(job),
                      job->options->program[0]);
    round->inherited.control_memory = job->control.memory;
    round->inherited.control_event = job->control.event;
    if (worker_env_create(&env, job->options, round) < 0) {
        log_line(LOG_ERROR, "out of memory");
        return 1;
    }
    job_stop_begin(job);
    wrapper_check(&job->wrapper, job->plan.world);
    if (job->folder.attempt == 0 && job->plan.node == 0)
        no_effect_ranks(job->options, job->plan.world);
    if (job->size > 1) {
        starter_begin(&job->starter);
        round->starter = &job->starter;
    }
    for (int i = 0; i < job->size && (i == 0 || !is_told_to_stop(job)); i++) {
        job->workers[i].rank = job->plan.base + i;
        job->workers[i].attempt = job->folder.attempt;
        worker_wrap(&job->workers[i], &job->wrapper, job->plan.world);
        JOB_ASK(job, code, inherits, i, &round->inherited);
        if (code == 0)
            code = worker_start(&job->workers[i], &job->program, &env, &job->ignored, &job->output,
                                &job->guard);
        if (code != 0)
            break;
        first_failure_watch(&job->failures, &job->workers[i]);
        control_host_started(&job->control, i, job->workers[i].pid);
        JOB_TELL(job, worker_started, &job->workers[i]);
        job->round.running++;
        if (clock_ms() - spoke > ALIVE_MS) { /* 1000 starts on a busy host take many seconds */
            job->nodes->ops->alive(job->nodes);
            spoke = clock_ms();
        }
    }
    starter_end(&job->starter);
    if (job->round.running == job->size && job->options->report != REPORT_NOT)
        place_report(job->options->report, job->workers, &env);
    worker_env_destroy(&env);
    return code;
}

/* Starts a round.  If the start fails with an exit code, the coordinator is told the code and the
 * round fails. */
void job_start_round(struct job *job)
{
    struct round round;
    int code = 0;

    if (job->round.restarted)
        say_what_failed(job, job->plan.restarts);
    else
        say_what_changed(job);
    job->round.running = job->round.lost = 0;
    job->round.failed = NULL;
    job->round.answers_until = 0;
    job->round.observed = (struct control_blame){ .on.reason = BLAME_NONE };
    job->round.culprit = -1;
    root_graph_begin(&job->round.graph, job->plan.world);
    round = round_of(job);
    JOB_ASK(job, code, round_begins, job, &round);
    if (job->size == 0 && code == 0) { /* without workers, this node's round is over at once */
        job->state = ENDED;
        return;
    }
    if (code == 0)
        code = start_workers(job, &round);
    if (code == 0) {
        JOB_TELL(job, round_began, job);
        return;
    }
    job->state = ENDED;
    clear_workers(job);
    job->nodes->ops->refused(job->nodes, code);
    drain(job);
}

/* ---- The end of the job ------------------------------------------------- */

void job_finish(struct job *job)
{
    if (job->code == 0 && job->round.lost > 0)
        log_line(LOG_WARN, "the job succeeded without %d of its %d workers here, which failed",
                 job->round.lost, job->size);
    else if (job->code == 0 && *job->round.elsewhere)
        log_line(LOG_WARN, "%s; the others continued, and the job succeeded without it",
                 job->round.elsewhere);
    else
        say_what_failed(job, 0);
    event_base_loopbreak(job->base);
}
