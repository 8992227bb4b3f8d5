/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - one process that ctrun started, and what became of it. */
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
    pid_t pid;   /* 0: not started */
    pid_t group; /* = pid until worker_clear(); then 0 */
    int running;
    int how,
        code; /* once ended: CLD_EXITED and its code, CLD_KILLED or CLD_DUMPED and the signal */
    struct pmi_fault fault; /* if fault.code is not 0, the worker failed, whatever its exit code */
    int asked;              /* the last signal that ctrun sent it; 0: none */
    int stopped;      /* was stopped by a signal or the freezer when ctrun ended the workers */
    int spared;       /* ctrun lets it end by itself for a while: others failed because of it */
    int first_failed; /* in its round */
    int lost;         /* it failed, and the others go on */
    int attempt;      /* rounds before this one, as in the path of its error file */
    time_t ended;     /* when ctrun noticed its end */
    const struct wrapper *wrapper; /* --exec-on command that it runs under; NULL: none */
    int foreground, lent;          /* it shall have our terminal; it has it now */
    struct stream out, err;
};

void worker_setup(struct worker *worker, int rank);

/* Puts the worker under the command of --exec-on, if that names its rank.  Called before the
 * worker's start.  If it is the only such rank, it also gets ctrun's terminal. */
void worker_wrap(struct worker *worker, const struct wrapper *wrapper, int world);

/* Starts the worker.  0: success; else ctrun's exit code: the error is logged and nothing of the
 * worker is left. */
int worker_start(struct worker *worker, const struct program *program, const struct worker_env *env,
                 const sigset_t *ignored, struct output *output, const struct guard *guard);

/* Sends a signal to the worker's whole process group, if the worker runs. */
void worker_signal(struct worker *worker, int number);

/* 1: the worker has just ended.  It stays a zombie until worker_kill_rest(), so that the kernel
 * gives its pid, also the number of its group, to no other process. */
int worker_check(struct worker *worker);

static inline int worker_failed(const struct worker *worker)
{
    return worker->pid > 0 && !worker->running
           && (worker->how != CLD_EXITED || worker->code != 0 || worker->fault.code);
}

/* Says whether the worker ended with an exit code, worker_exit_code(), and not by a signal. */
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

/* When the workers have ended, call worker_kill_rest() for all of them, then worker_clear() for
 * all.  worker_kill_rest() kills what the worker left behind in its group.  worker_clear() waits
 * until PID 1 or another parent has reaped that (soon, or never if PID 1 reaps no process), and
 * shows the worker's last output. */
void worker_kill_rest(struct worker *worker, const struct guard *guard);
void worker_clear(struct worker *worker, int64_t deadline);
void worker_free(struct worker *worker);

#endif
