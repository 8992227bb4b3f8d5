/* SPDX-License-Identifier: Apache-2.0 */
/* worker_env.h - makes the environment of workers, with torchrun's variables and ctrun's own. */
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
    int size;            /* number of workers on this node */
    int base, world;     /* rank of this node's first worker; number of workers on all nodes */
    int restarts;        /* number of restarts so far */
    const char *address; /* MASTER_ADDR */
    int port;            /* MASTER_PORT */
    const char *run_id, *generation;
    const struct secret *secret; /* secret of the store; size 0 if none */
    const struct run_folder *folder;
    const struct rlimit *descriptors;  /* limit of the workers' open descriptors */
    int role_base, role_world;         /* base and world, if only workers of this role count */
    int node, nodes;                   /* number of this node; number of nodes */
    int own_store;                     /* true if rank 0, not ctrun, hosts the store */
    const struct placement *placement; /* NULL if no worker is placed */
    int serves_pmi;                    /* true if ctrun serves PMI to the workers */
    int progress_room; /* columns of the terminal for a worker's progress bar on standard error; 0
                          if it shows no bar */
    struct inherited inherited;
    struct starter *starter; /* process that starts the workers; NULL if there is only one */
};

struct worker_env {
    char **entries; /* the variables that all workers share, NULL-terminated */
    int own, count; /* ctrun set the first `own` of `count` variables and inherited the rest */
    int is_short;   /* true if an entry is missing because memory was out */
    const struct round *round;
};

/* Makes the variables that all workers of a round share.  The variables that ctrun sets override
 * inherited ones, which override [env] and [collectives] of job.ini.  Returns -1 if out of memory,
 * else 0. */
int worker_env_create(struct worker_env *env, const struct options *options,
                      const struct round *round);
void worker_env_destroy(struct worker_env *env);

/* Makes the environment of one worker in one block, which the caller must free() and which points
 * into env.  Returns NULL if out of memory. */
char **worker_env_of(const struct worker_env *env, int local_rank);

/* Returns the value of a variable that all workers share; NULL if the variable is not set. */
const char *worker_env_get(const struct worker_env *env, const char *name);

/* Size of a buffer for the longest name.  A line of job.ini has at most 198 characters. */
#define WORKER_ENV_NAME 208

/* Writes the name of the variable that a line of [env] or [collectives] sets. */
void worker_env_name(const struct jobfile_entry *entry, char *name, size_t size);

/* Returns the first line of [env] or [collectives] that sets a variable that only ctrun may set,
 * such as RANK; NULL if there is no such line. */
const struct jobfile_entry *worker_env_conflict(const struct jobfile *file);

/* Returns 1 if ctrun sets OMP_NUM_THREADS to 1.  Like torchrun, ctrun does so if the node has
 * several workers and the user has not set the variable. */
int worker_env_sets_omp(const struct options *options, int size);
/* Returns 1 if ctrun sets CUDA_DEVICE_MAX_CONNECTIONS to 32, the maximum, because the user has not
 * set it.  With the default of 8 hardware queues, two streams in the same queue wait for each
 * other. */
int worker_env_sets_connections(const struct options *options);

#endif
