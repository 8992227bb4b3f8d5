/* SPDX-License-Identifier: Apache-2.0 */
/* job_run.c - sets a job up, runs it and tears it down.
 *
 * Steps that can refuse the job come before steps that must be undone.  So ctrun checks the limits,
 * finds the program, assigns CPUs and GPUs, and binds the store's socket before it makes folders,
 * starts the guard and connects to the other nodes. */
#include "launcher/job/job_internal.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/pmi/mpi_library.h"
#include "launcher/report/gpu_topology_report.h"
#include "launcher/workers/limits.h"
#include "launcher/workers/signals.h"
#include "launcher/workers/worker_env.h"
#include "runtime/net/interface.h"
#include "runtime/util/log.h"

/* A step of setup().  Returns 0, or logs the error and returns ctrun's exit code. */
typedef int step(struct job *job);

/* Checks that ctrun may open enough descriptors.  Node 0 needs a descriptor for each client of the
 * store, that is for each worker and each node.  With c10d, node 0 is not known yet. */
static int check_limits(struct job *job)
{
    const int is_coordinator =
        job->meeting->kind == MEET_ALONE
        || (job->meeting->kind == MEET_STATIC && job->options->node_rank == 0);
    const int nodes = job->meeting->kind == MEET_STATIC ? job->options->nnodes.max : 1;
    const long clients = nodes > 1 ? (long)nodes * (job->size + 1) : job->size;

    return limits_check(job->options, job->size, is_coordinator ? clients : 0, &job->descriptors);
}

/* Checks --iface in ctrun, so that the error is logged once and not by each worker. */
static int check_interface(struct job *job)
{
    char address[64];

    if (!job->options->iface || !*job->options->iface
        || interface_address("--iface", job->options->iface, address, sizeof address) == CT_OK)
        return 0;
    log_line(LOG_ERROR, "%s", ct_last_error());
    return 1;
}

/* Watches for the workers' ends, for out-of-memory kills, and for descendants that outlive the
 * workers. */
static int watch_workers(struct job *job)
{
    job->workers = calloc((size_t)job->size, sizeof *job->workers);
    if (!job->workers) {
        log_line(LOG_ERROR, "out of memory for %d workers", job->size);
        return 1;
    }
    for (int i = 0; i < job->size; i++)
        worker_setup(&job->workers[i], i);
    if (first_failure_open(&job->failures, job->workers, job->size, job_worker_died, job) < 0) {
        log_line(LOG_ERROR, "cannot watch %d workers: %s", job->size, strerror(errno));
        return 1;
    }
    oom_watch_open(&job->oom, "/sys/fs/cgroup", "/proc/self/cgroup");
    subreaper_start(&job->subreaper);
    return 0;
}

/* Logs torchrun's line about OMP_NUM_THREADS.  Logs nothing for a C program without OpenMP, which
 * does not read that variable. */
static void say_threads(const struct job *job)
{
    const struct program *program = &job->program;

    if (worker_env_sets_omp(job->options, job->size)
        && (job->meeting->kind != MEET_STATIC || job->options->node_rank == 0) /* on one node */
        && (program->leading[0] || !is_plain_rank(program->path)))
        log_line(LOG_WARN,
                 "Setting OMP_NUM_THREADS environment variable for each process to be 1; set it "
                 "yourself to change that");
}

static int find_program_and_places(struct job *job)
{
    int code;

    signals_ignored(&job->ignored);
    if (job->size == 0)
        return 0;
    if ((code = program_find(&job->program, job->options)) != 0
        || (code = wrapper_find(&job->wrapper, job->options)) != 0
        || (code = placement_create(&job->placement, job->options, job->size, "")) != 0)
        return code;
    say_threads(job);
    if (job->options->report != REPORT_NOT)
        links_report_read(job->placement, "");
    return 0;
}

/* Opens the sockets at which workers and other nodes reach this ctrun, and the event loop. */
static int open_doors(struct job *job)
{
    int code;

    if ((code = job_rendezvous_open(&job->meet, job->options, job->meeting)) != 0
        || (code = job_listen(job)) != 0
        || (job->meet.is_coordinator && (code = job_rendezvous_serve(&job->meet, job->base)) != 0))
        return code;
    return 0;
}

static int open_observers(struct job *job)
{
    struct observed *watch = &job->watch;
    int rows = 0, code = 0;

    while (watch->rows[rows])
        rows++;
    watch->states = calloc((size_t)rows, sizeof *watch->states);
    while (watch->states && watch->count < rows && code == 0) {
        const struct job_observer *row = watch->rows[watch->count];
        void *state = calloc(1, row->bytes);

        if (!state)
            break;
        watch->states[watch->count++] = state;
        code = row->open ? row->open(state, job) : 0;
    }
    if (code != 0 || watch->count == rows)
        return code;
    log_line(LOG_ERROR, "out of memory");
    return 1;
}

static int begin_observers(struct job *job)
{
    int code = 0;

    JOB_ASK(job, code, job_began, job);
    return code;
}

static void save_observers(void *arg)
{
    struct observed *watch = arg;

    for (int i = 0; i < watch->count; i++)
        if (watch->rows[i]->save)
            watch->rows[i]->save(watch->states[i]);
}

/* Makes the job's folder, and starts the guard, which removes the folder if ctrun is killed. */
static int open_folder_and_guard(struct job *job)
{
    struct guard_last last_words = { &job->folder, save_observers, &job->watch };
    int code;

    if (job->size == 0)
        return 0;
    if ((code = run_folder_create(&job->folder, job->options, job->meet.run_id, job->size)) != 0)
        return code;
    if (guard_start(&job->guard, job->size, &last_words) < 0) {
        log_line(LOG_ERROR, "cannot start the guard process: %s", strerror(errno));
        return 1;
    }
    return 0;
}

static int meet_nodes(struct job *job)
{
    job->nodes = (job->meet.is_coordinator ? nodes_coordinator : nodes_agent)(
        job->base, &job->meet, job->options, job->size, &job_nodes_hooks, job);
    return job->nodes ? 0 : 1;
}

static int setup(struct job *job)
{
    static step *const steps[] = { check_limits,    check_interface,         watch_workers,
                                   open_observers,  find_program_and_places, open_doors,
                                   begin_observers, open_folder_and_guard,   meet_nodes };
    int code = 0;

    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == 0; i++)
        code = steps[i](job);
    return code;
}

/* Returns 1 if the worker failed before ctrun asked it to stop, or in the time that ctrun gave it
 * to end by itself. */
static int has_failed(const struct worker *worker)
{
    return worker && worker_failed(worker) && (!worker->asked || worker->spared);
}

/* Closes the observers, and writes the error file if ctrun's caller set TORCHELASTIC_ERROR_FILE.
 * As under torchrun, the file is a copy of the error file of the worker that failed by itself; if
 * that worker wrote none, ctrun writes none.  For any other root cause ctrun writes its own error,
 * unless the worker wrote a file in the time that ctrun gave it to end by itself. */
static void pass_on(struct job *job)
{
    struct job_end end = { .code = job->code, .round = job_failed_round(job, job->reported) };
    char fault[1200] = "";
    int has_file;

    if (job->code != 0)
        log_last_error(fault, sizeof fault);
    if (job->code != 0 && job->told.by == BY_DEADLINE)
        snprintf(fault, sizeof fault, "the workers did not stop when --deadline was reached");
    else if (job->code != 0 && job->code == 128 + job->told.signal)
        snprintf(fault, sizeof fault, "ctrun was told to stop by signal %d", job->told.signal);
    has_file = has_failed(job->reported) && (report_upward(&end.round) || !job->reported->asked);
    if (job->code != 0 && !has_file)
        report_own_fault(fault);
    end.fault = fault;
    JOB_TELL(job, close, &end);
}

/* Writes the rest of the workers' output.  The reader gets as much time as a worker that stops, but
 * at least 2 s.  After a signal the reader gets 2 s. */
static void finish_output(struct job *job)
{
    const int seconds = job->told.signal ? 0 : job->options->shutdown_timeout;

    if (job->folder.unnamed && job->folder.attempt >= 0)
        log_line(LOG_WARN, "the workers' output is in %s", job->folder.path);
    output_finish(&job->output, 1000 * (seconds > 2 ? seconds : 2));
    output_free(&job->output);
}

static void tear_down(struct job *job)
{
    for (int i = 0; job->workers && i < job->size; i++)
        worker_free(&job->workers[i]);
    first_failure_close(&job->failures);
    root_graph_free(&job->round.graph);
    control_host_close(&job->control);
    run_folder_remove(&job->folder);
    guard_stop(&job->guard);
    if (job->nodes)
        job->nodes->ops->destroy(job->nodes);
    job_rendezvous_close(&job->meet);
    if (job->base) {
        finish_output(job);
        event_base_free(job->base);
    }
    for (int i = 0; i < job->watch.count; i++)
        free(job->watch.states[i]);
    free(job->watch.states);
    if (job->signal_fd >= 0)
        close(job->signal_fd);
    wrapper_free(&job->wrapper);
    placement_destroy(job->placement);
    free(job->workers);
}

int job_run(const struct options *options, const struct meeting *meeting, int size,
            const struct job_observer *const *observers)
{
    struct job job = { .options = options,
                       .meeting = meeting,
                       .watch.rows = observers,
                       .size = size,
                       .state = MEETING,
                       .signal_fd = -1,
                       .meet = { .listener = -1, .file_lock = -1 },
                       .failures.epoll = -1,
                       .control = { .memory = -1, .event = -1 },
                       .guard.pipe = -1 };

    job.code = setup(&job);
    if (job.code == 0) {
        job.nodes->ops->start(job.nodes);
        if (job.state != DONE)
            store_server_run(job.meet.server, job.base);
    }
    pass_on(&job);
    tear_down(&job);
    return job.code;
}
