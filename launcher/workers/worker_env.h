/* SPDX-License-Identifier: Apache-2.0 */
/* worker_env.h - the environment that workers find: torchrun's, and CT_GENERATION. */
#ifndef LAUNCHER_WORKERS_WORKER_ENV_H
#define LAUNCHER_WORKERS_WORKER_ENV_H

#include "config/options.h"
#include "launcher/placement/placement.h"
#include "launcher/stdio/log_dir.h"
#include "launcher/workers/spawn.h"
#include "runtime/net/shared_secret.h"

/* What each worker inherits beside its streams, under the same numbers: descriptors of the job's,
 * which keeps them.  One that is not above STDERR_FILENO (0, -1) does not exist. */
struct inherited {
    int control_memory; /* the control page */
    int control_event;  /* and the eventfd that wakes a thread that waits for its notices */
    int trace_memory;   /* the rings of --trace */
    int pmi;            /* the worker's own socket of PMI */
};

/* What is the same for all workers of one round. */
struct round {
    int size;        /* workers on this node */
    int base, world; /* the rank of the first of them; workers on all nodes */
    int restarts;    /* so far */
    const char *address;
    int port;
    const char *run_id, *generation;
    const struct secret *secret; /* of the store */
    const struct run_folder *folder;
    const struct rlimit *descriptors;  /* how many they may have open */
    int role_base, role_world;         /* as base and world, among those of the same role */
    int node, nodes;                   /* the rank of this node, and how many there are */
    int own_store;                     /* rank 0 serves one at address and port, ctrun does not */
    const struct placement *placement; /* NULL: nothing is placed */
    int serves_pmi;                    /* to MPI */
    int progress_room; /* of our terminal, for a worker's bar on standard error; 0: for none */
    struct inherited inherited;
    struct starter *starter; /* of their session; NULL: a worker alone */
};

struct worker_env {
    char **entries; /* of all workers; NULL-ended */
    int own, count; /* the first `own` are set here, the others are inherited */
    int is_short;   /* there was no memory for an entry */
    const struct round *round;
};

/* Once per round: ctrun's own environment, job.ini's [env] and [collectives]
 * where that says nothing, then our variables over both.  -1: out of memory. */
int worker_env_create(struct worker_env *env, const struct options *options,
                      const struct round *round);
void worker_env_destroy(struct worker_env *env);

/* One worker's, in one block for free(); it points into env.  NULL: out of memory. */
char **worker_env_of(const struct worker_env *env, int local_rank);

/* What all workers find under that name; NULL: it is unset. */
const char *worker_env_get(const struct worker_env *env, const char *name);

/* Room for the longest: a line of job.ini has 198 characters at most. */
#define WORKER_ENV_NAME 208

/* The variable that a line of [env] or [collectives] sets. */
void worker_env_name(const struct jobfile_entry *entry, char *name, size_t size);

/* The first line of [env] or [collectives] that names a variable which is ctrun's to
 * set (RANK, ...); NULL: none. */
const struct jobfile_entry *worker_env_conflict(const struct jobfile *file);

/* torchrun's rule: several workers, and the user said nothing. */
int worker_env_sets_omp(const struct options *options, int size);
/* Whether CUDA_DEVICE_MAX_CONNECTIONS becomes 32, the most, since the user has not set it.  Two
 * streams that share one of 8 hardware queues wait for each other. */
int worker_env_sets_connections(const struct options *options);

#endif
