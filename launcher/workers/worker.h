/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - a worker process of this node, from its start to its end. */
#ifndef LAUNCHER_WORKERS_WORKER_H
#define LAUNCHER_WORKERS_WORKER_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "launcher/pmi/pmi_server.h"
#include "launcher/stdio/worker_stream.h"
#include "launcher/workers/debug_wrapper.h"
#include "launcher/workers/guard.h"
#include "launcher/workers/program.h"
#include "launcher/workers/worker_env.h"

struct worker {
    int rank, local_rank;
    pid_t pid;     /* 0 if the worker did not start */
    pid_t group;   /* the worker's process group, equal to pid; 0 after worker_clear() */
    int running;   /* true from the start until worker_check() notices the end */
    int how, code; /* after the end: CLD_EXITED and the exit code, or CLD_KILLED or CLD_DUMPED and
                      the signal */
    struct pmi_fault fault; /* if fault.code is not 0, the worker failed, whatever its exit code */
    int asked;              /* the last signal by which ctrun asked the worker to stop; 0 if none */
    int stopped; /* true if a signal or the freezer held the worker when ctrun ended the workers */
    int spared;  /* true while a worker that made others fail gets time to end by itself */
    int first_failed; /* true if this worker is the first that failed in its round */
    int lost;         /* true if this worker failed and the other workers continue */
    int attempt;      /* number of earlier rounds, as in the path of the worker's error file */
    time_t ended;     /* when ctrun noticed the worker's end */
    const struct wrapper *wrapper; /* --exec-on command that runs the worker; NULL if none */
    int foreground, lent;          /* true if the worker may get ctrun's terminal; has it now */
    struct stream out, err;
};

void worker_setup(struct worker *worker, int rank);

/* Makes the worker run under the command of --exec-on, if that option lists the worker's rank.  If
 * no other rank is listed, the worker also gets ctrun's terminal.  Called before worker_start(). */
void worker_wrap(struct worker *worker, const struct wrapper *wrapper, int world);

/* Starts the worker.  Returns 0, or logs an error, cleans up and returns ctrun's exit code. */
int worker_start(struct worker *worker, const struct program *program, const struct worker_env *env,
                 const sigset_t *ignored, struct output *output, const struct guard *guard);

/* Sends a signal to the worker's whole process group, if the worker runs. */
void worker_signal(struct worker *worker, int number);

/* Returns 1 if the worker has just ended, else 0.  The worker stays a zombie until
 * worker_kill_rest(), so that the kernel does not reuse its pid, which is also the number of its
 * process group. */
int worker_check(struct worker *worker);

static inline int worker_failed(const struct worker *worker)
{
    return worker->pid > 0 && !worker->running
           && (worker->how != CLD_EXITED || worker->code != 0 || worker->fault.code);
}

/* Returns true if worker_exit_code() is an exit code or PMI's fault; false if the worker was killed
 * by a signal. */
static inline int worker_exited(const struct worker *worker)
{
    return worker->fault.code || worker->how == CLD_EXITED;
}

static inline int worker_exit_code(const struct worker *worker)
{
    if (worker->fault.code)
        return worker->fault.code;
    return worker->how == CLD_EXITED ? worker->code : 128 + worker->code;
}

/* When all workers have ended, call worker_kill_rest() for each worker, then worker_clear() for
 * each worker.  worker_kill_rest() kills the processes that are left in the worker's group.
 * worker_clear() waits until PID 1 or another parent has reaped these processes, but at most until
 * the deadline, since some containers' PID 1 reaps no process.  Then worker_clear() shows the
 * worker's last output. */
void worker_kill_rest(struct worker *worker, const struct guard *guard);
void worker_clear(struct worker *worker, int64_t deadline);
void worker_free(struct worker *worker);

#endif
