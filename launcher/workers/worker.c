/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - starts a worker, sends signals to it, notices its end and cleans up after it. */
#include "launcher/workers/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/placement/placement.h"
#include "launcher/workers/spawn.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "runtime/util/process_state.h"

void worker_setup(struct worker *worker, int rank)
{
    *worker = (struct worker){ .rank = rank, .local_rank = rank };
    stream_setup(&worker->out);
    stream_setup(&worker->err);
}

/* Opens the worker's streams.  Returns 0; 1 after it logged an error; -1 with errno set. */
static int open_streams(struct worker *worker, struct output *output, struct spawn_args *args)
{
    int status;

    if (worker->foreground) /* the worker uses ctrun's terminal directly */
        return 0;
    status =
        worker_stream_open(&worker->out, output, worker->rank, worker->local_rank, STDOUT_FILENO);

    if (status == 0)
        status = worker_stream_open(&worker->err, output, worker->rank, worker->local_rank,
                                    STDERR_FILENO);
    args->in = stdin_route_of(&output->input, worker->rank);
    args->out = worker->out.given;
    args->err = worker->err.given;
    return status;
}

void worker_wrap(struct worker *worker, const struct wrapper *wrapper, int world)
{
    worker->wrapper = wrapper_has(wrapper, worker->rank, world) ? wrapper : NULL;
    worker->foreground = worker->wrapper && wrapper_has_one(wrapper, world) && foreground_is_ours();
}

static int worker_refuse(const struct worker *worker, const struct program *program, int execed)
{
    const int cause = errno;

    if (!execed) {
        log_line(LOG_ERROR, "cannot start rank %d: %s%s", worker->rank, strerror(cause),
                 cause == EAGAIN   ? ": no more processes are allowed (ulimit -u, pids.max)"
                 : cause == ECHILD ? ": the process that starts the workers was killed"
                 : cause == EMFILE ? ": no more descriptors are allowed (ulimit -n)"
                 : cause == EINVAL ? ": the CPUs that were chosen for it can't be used any more"
                 : cause == EPERM ? ": it may not be bound to processors here (sched_setaffinity); "
                                    "leave out --bind and --numa-binding"
                                  : "");
        return 1;
    }
    log_line(LOG_ERROR, "cannot run %s: %s%s",
             worker->wrapper ? worker->wrapper->path : program->path, strerror(cause),
             cause == ENOEXEC  ? ": it is not a program for this machine; a script needs a first "
                                 "line such as #!/bin/sh"
             : cause == ENOENT ? ": the interpreter that it names is missing"
                               : "");
    return cause == ENOENT ? 127 : 126;
}

/* Returns the arguments of spawn() that depend on the round and on the worker's placement.  The
 * caller adds the program and the streams. */
static struct spawn_args args_of(const struct worker *worker, const struct round *round,
                                 const sigset_t *ignored, const struct guard *guard)
{
    const struct placement *placement = round->placement;
    const struct inherited *inherited = &round->inherited;
    struct spawn_args args = { .in = -1,
                               .out = -1,
                               .err = -1,
                               .announce = guard_place(guard, worker->local_rank),
                               .ignored = ignored,
                               .foreground = worker->foreground,
                               .starter = round->starter,
                               .descriptors = round->descriptors,
                               .keep = { inherited->control_memory, inherited->control_event,
                                         inherited->trace_memory, inherited->pmi } };

    if (placement && placement->place[worker->local_rank].bound) {
        args.cpus = &placement->place[worker->local_rank].cpus;
        args.memory = placement->place[worker->local_rank].memory;
    }
    return args;
}

int worker_start(struct worker *worker, const struct program *program, const struct worker_env *env,
                 const sigset_t *ignored, struct output *output, const struct guard *guard)
{
    struct spawn_args args = args_of(worker, env->round, ignored, guard);
    char **argv = program_argv(program, worker->local_rank);
    char **envp = worker_env_of(env, worker->local_rank);
    int execed = 0, code = 0, status = -1;

    if (worker->wrapper)
        argv = wrapper_argv(worker->wrapper, program->path, argv);
    args.path = worker->wrapper ? worker->wrapper->path : program->path;
    args.argv = argv;
    args.envp = envp;
    worker->pid = 0;
    worker->asked = worker->first_failed = worker->lost = 0;
    worker->stopped = worker->spared = 0;
    worker->fault.code = 0;
    errno = ENOMEM;
    if (argv && envp && (status = open_streams(worker, output, &args)) == 0)
        worker->pid = spawn(&args, &execed);
    if (worker->pid > 0) {
        worker->group = worker->pid;
        worker->running = 1;
        worker->lent = worker->foreground;
    } else {
        code = status > 0 ? status : worker_refuse(worker, program, execed);
        worker->pid = 0;
        if (worker->foreground)
            foreground_take();
    }
    stream_given(&worker->out);
    stream_given(&worker->err);
    free(argv);
    free(envp);
    return code;
}

/* Returns 1 if the process or one of its descendants is stopped by a signal.  A shell's commands,
 * for example, are its children. */
static int one_is_stopped(pid_t pid)
{
    char path[64];
    FILE *children;
    int found = process_state(pid) == 'T', child;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    if (found || !(children = fopen(path, "re")))
        return found;
    while (!found && fscanf(children, "%d", &child) == 1)
        found = one_is_stopped(child);
    fclose(children);
    return found;
}

void worker_signal(struct worker *worker, int number)
{
    int stopped;

    if (!worker->running)
        return;
    stopped = one_is_stopped(worker->pid); /* before the signal kills a shell but not its child */
    if (number == SIGCONT && worker->foreground && !worker->lent)
        worker->lent = foreground_continued(worker->pid);
    kill(-worker->group, number);
    if (number == SIGCONT || number == SIGWINCH || number == SIGUSR1 || number == SIGUSR2)
        return;
    worker->asked = number;
    /* A stopped process handles the signal only after a SIGCONT.  If no process is stopped, ctrun
     * sends no SIGCONT: it would undo the SIGSTOP by which a debugger or LeakSanitizer attaches to
     * the process, and the debugger would wait forever. */
    if (stopped)
        kill(-worker->group, SIGCONT);
}

int worker_check(struct worker *worker)
{
    siginfo_t info = { .si_pid = 0 };

    if (worker->foreground && worker->running)
        worker->lent = foreground_stopped(worker->pid, worker->lent);
    if (!worker->running || waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0
        || info.si_pid == 0)
        return 0;
    worker->running = 0;
    if (worker->lent)
        foreground_take();
    worker->lent = 0;
    worker->how = info.si_code;
    worker->code = info.si_status;
    worker->ended = time(NULL);
    return 1;
}

void worker_kill_rest(struct worker *worker, const struct guard *guard)
{
    if (worker->group <= 0)
        return;
    kill(-worker->group, SIGKILL);
    guard_remove(guard, worker->local_rank);
    while (waitpid(worker->group, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void worker_clear(struct worker *worker, int64_t deadline)
{
    while (worker->group > 0 && kill(-worker->group, 0) == 0 && clock_ms() < deadline)
        usleep(500);
    worker->group = 0;
    worker_stream_close(&worker->out);
    worker_stream_close(&worker->err);
}

void worker_free(struct worker *worker)
{
    stream_free(&worker->out);
    stream_free(&worker->err);
}
