/* SPDX-License-Identifier: Apache-2.0 */
/* worker_env.h - makes the environment of workers: torchrun's variables and ctrun's own. */
#ifndef LAUNCHER_WORKERS_WORKER_ENV_H
#define LAUNCHER_WORKERS_WORKER_ENV_H

#include "config/options.h"
#include "launcher/placement/placement.h"
#include "launcher/stdio/log_dir.h"
#include "launcher/workers/spawn.h"
#include "runtime/net/shared_secret.h"

/* Descriptors that each worker inherits in addition to its streams, with the same numbers.  The job
 * owns them.  A number that is not above STDERR_FILENO (0, -1) is not a descriptor. */
struct inherited {
    int control_memory; /* the control page */
    int control_event;  /* the eventfd that wakes a thread waiting for notices of the page */
    int trace_memory;   /* the rings of --trace */
    int pmi;            /* the worker's own socket of PMI */
};

/* Values that are the same for all workers of one round. */
struct round {
    int size;        /* workers on this node */
    int base, world; /* rank of this node's first worker; workers on all nodes */
    int restarts;    /* so far */
    const char *address;
    int port;
    const char *run_id, *generation;
    const struct secret *secret; /* secret of the store */
    const struct run_folder *folder;
    const struct rlimit *descriptors; /* limit of the workers' open descriptors */
    int role_base, role_world; /* like base and world, but only workers of the same role count */
    int node, nodes;           /* number of this node; number of nodes */
    int own_store;             /* rank 0, not ctrun, serves a store at address and port */
    const struct placement *placement; /* NULL: nothing is placed */
    int serves_pmi;                    /* ctrun serves PMI to the workers */
    int progress_room; /* columns of our terminal for a worker's progress bar on standard error; 0:
                          no bar */
    struct inherited inherited;
    struct starter *starter; /* starter of the workers' session; NULL: only one worker */
};

struct worker_env {
    char **entries; /* variables of all workers, NULL-ended */
    int own, count; /* the first `own` are set here, the others are inherited */
    int is_short;   /* memory was out for an entry */
    const struct round *round;
};

/* Makes the environment once per round: ctrun's own, then [env] and [collectives] of job.ini where
 * ctrun's own sets nothing; our variables override both.  -1: out of memory. */
int worker_env_create(struct worker_env *env, const struct options *options,
                      const struct round *round);
void worker_env_destroy(struct worker_env *env);

/* Makes the environment of one worker, in one block for free().  It points into env.  NULL: out of
 * memory. */
char **worker_env_of(const struct worker_env *env, int local_rank);

/* Gives the value that all workers have for that name; NULL: unset. */
const char *worker_env_get(const struct worker_env *env, const char *name);

/* Room for the longest name: a line of job.ini has at most 198 characters. */
#define WORKER_ENV_NAME 208

/* Writes the name of the variable that a line of [env] or [collectives] sets. */
void worker_env_name(const struct jobfile_entry *entry, char *name, size_t size);

/* Gives the first line of [env] or [collectives] with a variable that only ctrun may set (RANK,
 * ...); NULL: no such line. */
const struct jobfile_entry *worker_env_conflict(const struct jobfile *file);

/* Says whether OMP_NUM_THREADS becomes 1.  As under torchrun: with several workers, if the user has
 * not set it. */
int worker_env_sets_omp(const struct options *options, int size);
/* Says whether CUDA_DEVICE_MAX_CONNECTIONS becomes 32, the maximum: if the user has not set it.
 * With the default of 8 hardware queues, two streams in one queue wait for each other. */
int worker_env_sets_connections(const struct options *options);

#endif
