/* SPDX-License-Identifier: Apache-2.0 */
/* worker_env.c - builds the environment of workers in two steps.  The first step, once per round,
 * builds the variables that all workers share.  The second step, for each worker, copies the
 * pointers to the shared variables and adds the few variables that differ. */
#include "launcher/workers/worker_env.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The variables that workers never inherit from ctrun's environment.  The first PER_WORKER, and
 * with PMI also the next PER_WORKER_PMI, differ by worker. */
static const char *const ours[] = {
    "RANK",
    "LOCAL_RANK",
    "ROLE_RANK",
    "TORCHELASTIC_ERROR_FILE",
#define PER_WORKER 4
    "PMI_FD",
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
#define PER_WORKER_PMI 5
    "PMI_PORT", /* a process manager above ctrun may have set PMI's variables */
    "PMI_ID",
    "PMI_SPAWNED",
    "HYDI_CONTROL_FD",
    "CT_CONTROL",
    "CT_TRACE_RING",
    "CT_TRACE", /* sets --trace; ctrun writes the trace of all workers */
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_NAME",
    "ROLE_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_USE_AGENT_STORE",
    "TORCHELASTIC_SIGNALS_TO_HANDLE",
    "CT_GENERATION",
    "CT_STORE_SECRET",
    "CT_SLOTS", /* for ctrun, not for workers */
    "CT_HOSTS_NODE",
    "CT_HOSTS_NAMES",
    "CT_PROGRESS_ROOM",
    "CT_STATUS", /* address of this ctrun's status page */
    "CT_STATUS_TOKEN",
    "CT_INTERFACE", /* --iface */
    "CT_ENCRYPT",   /* --encrypt */
};
#define OURS (int)(sizeof ours / sizeof *ours)

static const char *env_named(const char *entry, const char *name)
{
    const size_t length = strlen(name);

    return !strncmp(entry, name, length) && entry[length] == '=' ? entry + length + 1 : NULL;
}

static int is_ours(const char *entry)
{
    for (int i = 0; i < OURS; i++)
        if (env_named(entry, ours[i]))
            return 1;
    return 0;
}

/* The lists of GPUs that ctrun may set.  It sets the first placed() of them. */
static const char *const gpu_lists[] = { "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES" };

static int placed(const struct placement *placement)
{
    return !placement_visible(placement, 0) ? 0 : placement->hip ? 2 : 1;
}

static int is_placed(const struct placement *placement, const char *name, size_t length)
{
    for (int i = 0; i < placed(placement); i++)
        if (strlen(gpu_lists[i]) == length && !strncmp(gpu_lists[i], name, length))
            return 1;
    return 0;
}

static int has_control(const struct round *round)
{
    return round->inherited.control_memory > STDERR_FILENO;
}

static int has_trace(const struct round *round)
{
    return round->inherited.trace_memory > STDERR_FILENO;
}

/* Returns 1 if env_put() has added an entry with the same name already. */
static int is_set(const struct worker_env *env, const char *entry)
{
    const size_t name = strcspn(entry, "=") + 1;

    for (int i = 0; i < env->own; i++)
        if (!strncmp(env->entries[i], entry, name))
            return 1;
    return 0;
}

static void env_put(struct worker_env *env, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds an entry, unless an entry with the same name was added before.  env->entries has room for
 * all of ctrun's entries and all lines of job.ini. */
static void env_put(struct worker_env *env, const char *format, ...)
{
    va_list args;
    char *entry;

    va_start(args, format);
    if (vasprintf(&entry, format, args) < 0)
        env->is_short = 1;
    else if (is_set(env, entry))
        free(entry);
    else
        env->entries[env->own++] = entry;
    va_end(args);
}

/* For example, the key "all-reduce" of [collectives] sets CT_ALL_REDUCE. */
void worker_env_name(const struct jobfile_entry *entry, char *name, size_t size)
{
    const int collective = !strcmp(entry->section, "collectives");

    snprintf(name, size, "%s%s", collective ? "CT_" : "", entry->key);
    for (char *c = name; collective && *c; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

const struct jobfile_entry *worker_env_conflict(const struct jobfile *file)
{
    for (int i = 0; i < file->count; i++) {
        const struct jobfile_entry *entry = &file->entries[i];
        char name[WORKER_ENV_NAME];

        worker_env_name(entry, name, sizeof name);
        for (int j = 0; j < OURS && strcmp(entry->section, "ctrun") != 0; j++)
            if (!strcmp(ours[j], name))
                return entry;
    }
    return NULL;
}

/* Returns 1, and writes the variable's name, if a line of job.ini sets a variable.  A variable of
 * the environment that is not empty overrides job.ini. */
static int file_sets(const struct worker_env *env, const struct jobfile_entry *entry,
                     char name[WORKER_ENV_NAME])
{
    const char *there;

    if (!strcmp(entry->section, "ctrun"))
        return 0;
    worker_env_name(entry, name, WORKER_ENV_NAME);
    there = getenv(name);
    return !(there && *there) && !is_placed(env->round->placement, name, strlen(name));
}

static void put_file(struct worker_env *env, const struct jobfile *file)
{
    char name[WORKER_ENV_NAME];

    for (int i = 0; i < file->count; i++)
        if (file_sets(env, &file->entries[i], name))
            env_put(env, "%s=%s", name, file->entries[i].value);
}

static int user_sets(const struct options *options, const char *name)
{
    const char *there = getenv(name);

    for (int i = 0; i < options->file.count; i++)
        if (!strcmp(options->file.entries[i].section, "env")
            && !strcmp(options->file.entries[i].key, name))
            return 1;
    return there && *there;
}

int worker_env_sets_omp(const struct options *options, int size)
{
    return size > 1 && !user_sets(options, "OMP_NUM_THREADS");
}

int worker_env_sets_connections(const struct options *options)
{
    return !user_sets(options, "CUDA_DEVICE_MAX_CONNECTIONS");
}

static void put_ours(struct worker_env *env, const struct options *options)
{
    const struct round *round = env->round;
    const struct placement *placement = round->placement;
    const char *nccl = getenv("TORCH_NCCL_ASYNC_ERROR_HANDLING");

    if (worker_env_sets_omp(options, round->size))
        env_put(env, "OMP_NUM_THREADS=1");
    if (worker_env_sets_connections(options))
        env_put(env, "CUDA_DEVICE_MAX_CONNECTIONS=32");
    if (!(nccl && *nccl))
        env_put(env, "TORCH_NCCL_ASYNC_ERROR_HANDLING=1");
    for (int i = 0; placement && !placement->own_gpu_only && i < placed(placement); i++)
        env_put(env, "%s=%s", gpu_lists[i], placement_visible(placement, 0));
    env_put(env, "WORLD_SIZE=%d", round->world);
    env_put(env, "LOCAL_WORLD_SIZE=%d", round->size);
    env_put(env, "GROUP_RANK=%d", round->node);
    env_put(env, "GROUP_WORLD_SIZE=%d", round->nodes);
    env_put(env, "ROLE_NAME=%s", options->role);
    env_put(env, "ROLE_WORLD_SIZE=%d", round->role_world);
    env_put(env, "MASTER_ADDR=%s", round->address);
    env_put(env, "MASTER_PORT=%d", round->port);
    env_put(env, "TORCHELASTIC_RUN_ID=%s", round->run_id);
    env_put(env, "TORCHELASTIC_RESTART_COUNT=%d", round->restarts);
    env_put(env, "TORCHELASTIC_MAX_RESTARTS=%d", options->max_restarts.most);
    env_put(env, "TORCHELASTIC_USE_AGENT_STORE=%s", round->own_store ? "False" : "True");
    env_put(env, "TORCHELASTIC_SIGNALS_TO_HANDLE=%s",
            options->settings[OPTION_SIGNALS_TO_HANDLE].text);
    env_put(env, "CT_GENERATION=%s", round->generation);
    if (round->progress_room > 0)
        env_put(env, "CT_PROGRESS_ROOM=%d", round->progress_room);
    if (options->encrypt)
        env_put(env, "CT_ENCRYPT=1");
    if (options->iface)
        env_put(env, "CT_INTERFACE=%s", options->iface);
    if (round->secret->size > 0)
        env_put(env, "CT_STORE_SECRET=%.*s", (int)round->secret->size,
                (const char *)round->secret->bytes);
}

int worker_env_create(struct worker_env *env, const struct options *options,
                      const struct round *round)
{
    int room = OURS + 5 + options->file.count;

    for (char **entry = environ; *entry; entry++)
        room++;
    *env = (struct worker_env){ .round = round };
    if (!(env->entries = calloc((size_t)room, sizeof *env->entries)))
        return -1;
    put_file(env, &options->file);
    put_ours(env, options);
    env->count = env->own;
    for (char **entry = environ; *entry; entry++)
        if (!is_ours(*entry) && !is_set(env, *entry)
            && !is_placed(round->placement, *entry, strcspn(*entry, "=")))
            env->entries[env->count++] = *entry;
    if (!env->is_short)
        return 0;
    worker_env_destroy(env);
    return -1;
}

void worker_env_destroy(struct worker_env *env)
{
    for (int i = 0; i < env->own; i++)
        free(env->entries[i]);
    free(env->entries);
    *env = (struct worker_env){ 0 };
}

const char *worker_env_get(const struct worker_env *env, const char *name)
{
    for (int i = 0; i < env->count; i++)
        if (env_named(env->entries[i], name))
            return env_named(env->entries[i], name);
    return NULL;
}

/* Writes the entries that differ by worker, each with a NUL at its end: the PER_WORKER ones, PMI's,
 * the control page, the trace, and the worker's own GPU.  Returns the number of bytes. */
static int write_own(const struct worker_env *env, int local_rank, int own_gpu, char *text,
                     size_t size)
{
    const struct round *round = env->round;
    char path[PATH_MAX];
    int used;

    run_folder_error_file(round->folder, round->folder->attempt, local_rank, path, sizeof path);
    used = snprintf(text, size, "RANK=%d%cLOCAL_RANK=%d%cROLE_RANK=%d%cTORCHELASTIC_ERROR_FILE=%s",
                    round->base + local_rank, 0, own_gpu ? 0 : local_rank, 0,
                    round->role_base + local_rank, 0, path)
           + 1;
    if (round->serves_pmi)
        used += snprintf(text + used, size - (size_t)used,
                         "PMI_FD=%d%cPMI_RANK=%d%cPMI_SIZE=%d%cMPI_LOCALRANKID=%d%c"
                         "MPI_LOCALNRANKS=%d",
                         round->inherited.pmi, 0, round->base + local_rank, 0, round->world, 0,
                         local_rank, 0, round->size)
                + 1;
    if (has_control(round))
        used +=
            snprintf(text + used, size - (size_t)used, "CT_CONTROL=%d:%d:%d",
                     round->inherited.control_memory, round->inherited.control_event, local_rank)
            + 1;
    if (has_trace(round))
        used += snprintf(text + used, size - (size_t)used, "CT_TRACE_RING=%d:%d",
                         round->inherited.trace_memory, local_rank)
                + 1;
    for (int i = 0; own_gpu && i < placed(round->placement); i++)
        used += snprintf(text + used, size - (size_t)used, "%s=%s", gpu_lists[i],
                         placement_visible(round->placement, local_rank))
                + 1;
    return used;
}

char **worker_env_of(const struct worker_env *env, int local_rank)
{
    const int own_gpu = env->round->placement && env->round->placement->own_gpu_only;
    const int own = PER_WORKER + (env->round->serves_pmi ? PER_WORKER_PMI : 0)
                    + has_control(env->round) + has_trace(env->round)
                    + (own_gpu ? placed(env->round->placement) : 0);
    const size_t pointers = ((size_t)env->count + (size_t)own + 1) * sizeof(char *);
    char text[PATH_MAX + 256 + 2 * (sizeof(struct visible_gpu) + 32)];
    const int used = write_own(env, local_rank, own_gpu, text, sizeof text);
    char **entries, *at;
    int count = env->count;

    if (!(entries = malloc(pointers + (size_t)used)))
        return NULL;
    memcpy(entries, env->entries, (size_t)count * sizeof *entries);
    at = memcpy((char *)entries + pointers, text, (size_t)used);
    for (int i = 0; i < own; i++, at += strlen(at) + 1)
        entries[count++] = at;
    entries[count] = NULL;
    return entries;
}
