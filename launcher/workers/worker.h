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
    pid_t group; /* the same, while we hold it; 0: cleared */
    int running;
    int how,
        code; /* once ended: CLD_EXITED and its code, CLD_KILLED or CLD_DUMPED and the signal */
    struct pmi_fault fault; /* its end is a failure, whatever its code is; code 0: it has none */
    int asked;              /* the last signal that ctrun sent it; 0: none */
    int stopped;            /* by a signal or the freezer, when ctrun ended the workers */
    int spared;       /* ctrun lets it end by itself for a while: others failed because of it */
    int first_failed; /* in its round */
    int lost;         /* it failed, and the others go on */
    int attempt;      /* rounds before this one: its error file's */
    time_t ended;     /* when its end was noticed */
    const struct wrapper *wrapper; /* what it runs under; NULL: nothing */
    int foreground, lent;          /* is it to have our terminal? has it? */
    struct stream out, err;
};

void worker_setup(struct worker *worker, int rank);

/* Before its start: puts it under the command of --exec-on, if its rank is named there.  Alone
 * there it also gets the terminal that ctrun has. */
void worker_wrap(struct worker *worker, const struct wrapper *wrapper, int world);

/* 0, or ctrun's exit code and the error is logged; then nothing of it is left. */
int worker_start(struct worker *worker, const struct program *program, const struct worker_env *env,
                 const sigset_t *ignored, struct output *output, const struct guard *guard);

/* To its whole process group, while it runs. */
void worker_signal(struct worker *worker, int number);

/* 1: it has just ended.  It stays a zombie until worker_kill_rest(), so that the kernel gives its
 * pid, the name of its group, to no other process. */
int worker_check(struct worker *worker);

static inline int worker_failed(const struct worker *worker)
{
    return worker->pid > 0 && !worker->running
           && (worker->how != CLD_EXITED || worker->code != 0 || worker->fault.code);
}

/* By itself, with worker_exit_code(), and not by a signal. */
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

/* After its end.  For all workers worker_kill_rest(): kills what it left behind in its group.  Then
 * for all worker_clear(): waits for that, which PID 1 or another parent reaps (soon, or never where
 * PID 1 reaps no process), and shows the worker's last output. */
void worker_kill_rest(struct worker *worker, const struct guard *guard);
void worker_clear(struct worker *worker, int64_t deadline);
void worker_free(struct worker *worker);

#endif
