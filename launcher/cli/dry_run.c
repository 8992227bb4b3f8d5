/* SPDX-License-Identifier: Apache-2.0 */
/* dry_run.c - prints what a run would execute on this node: a comment and a shell command for each
 * worker.  The command sets ctrun's variables in addition to those that a worker inherits.  Nothing
 * is executed, and no socket is opened.
 *
 * The words and variables are the same as in a run, since the same functions make them.  Rank 0
 * hosts the store at torchrun's port, and there is neither a generation nor a secret, as in a job
 * without ctrun.  So workers that the user starts by hand find each other.  In a job of several
 * nodes, the ranks are right only if each node starts the same number of workers. */
#include "launcher/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/placement/placement.h"
#include "launcher/util/shell_words.h"
#include "launcher/workers/debug_wrapper.h"
#include "launcher/workers/program.h"
#include "launcher/workers/worker_env.h"
#include "runtime/util/log.h"

/* Returns what is known about the round before a run. */
static struct round dry_run_round(const struct options *options, const struct meeting *meeting,
                                  int size)
{
    static const struct run_folder no_folder = { .path = "" };
    static const struct secret no_secret = { .size = 0 };
    const int nodes = meeting->kind == MEET_DYNAMIC ? options->nnodes.min : options->nnodes.max;
    const int node = meeting->kind == MEET_STATIC ? options->node_rank : 0;

    return (struct round){ .size = size,
                           .base = node * size,
                           .world = nodes * size,
                           .role_base = node * size,
                           .role_world = nodes * size,
                           .node = node,
                           .nodes = nodes,
                           .address = meeting->host,
                           .port = meeting->port ? meeting->port : STATIC_PORT,
                           .own_store = 1,
                           .run_id = options->rdzv_id,
                           .generation = "",
                           .secret = &no_secret,
                           .folder = &no_folder };
}

static void dry_run_word(const char *option, const char *word)
{
    printf("  %s", option);
    shell_quote(stdout, word);
    printf(" \\\n");
}

/* Prints "-u NAME" if no worker inherits this variable of ctrun's environment. */
static void dry_run_unset(const struct worker_env *env, const char *entry)
{
    char name[4096];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(entry, "="), entry);
    if (!worker_env_get(env, name))
        dry_run_word("-u ", name);
}

static void dry_run_print(const struct worker_env *env, int local_rank, char **variables,
                          char **argv)
{
    const struct round *round = env->round;
    const struct worker_place *place =
        round->placement ? &round->placement->place[local_rank] : NULL;
    char cpus[CPUS_TEXT];

    printf("\n# rank %d of %d, local rank %d, node %d of %d\nenv \\\n", round->base + local_rank,
           round->world, local_rank, round->node, round->nodes);
    for (char **inherited = environ; *inherited; inherited++)
        dry_run_unset(env, *inherited);
    for (int i = 0; variables[i]; i++)
        if (i < env->own || i >= env->count)
            dry_run_word("", variables[i]);
    printf("  ");
    if (place && place->bound) {
        cpus_write(&place->cpus, cpus);
        printf("taskset -c %s ", cpus);
    } else if (strchr(argv[0], '=')) { /* env(1) would mistake the program for a variable */
        printf("sh -c 'exec \"$0\" \"$@\"' ");
    }
    shell_print(stdout, argv);
    printf("\n");
}

static int dry_run_worker(const struct program *program, const struct wrapper *wrapper,
                          const struct worker_env *env, int local_rank)
{
    char **argv = program_argv(program, local_rank);
    char **variables = worker_env_of(env, local_rank);
    const char *path = program->path;
    int status = -1;

    if (wrapper_has(wrapper, env->round->base + local_rank, env->round->world)) {
        argv = wrapper_argv(wrapper, path, argv);
        path = wrapper->path;
    }
    if (argv && variables) {
        argv[0] = (char *)path;
        dry_run_print(env, local_rank, variables, argv);
        status = 0;
    }
    free(variables);
    free(argv);
    return status;
}

static int dry_run_workers(const struct options *options, const struct program *program,
                           const struct wrapper *wrapper, const struct round *round)
{
    struct worker_env env;
    int status = worker_env_create(&env, options, round);

    printf("# For a run ctrun also chooses, unless they are given: the port, the run id, the "
           "generation, the files for errors, the secret.\n");
    if (round->placement && round->placement->place[0].bound)
        printf("# A run also prefers the memory near the CPUs of taskset.\n");
    if (round->serves_pmi)
        printf("# It also serves PMI: without ctrun these workers don't find each other.\n");
    for (int i = 0; i < round->size && status == 0; i++)
        status = dry_run_worker(program, wrapper, &env, i);
    if (status < 0)
        log_line(LOG_ERROR, "out of memory");
    worker_env_destroy(&env);
    return status < 0 ? 1 : 0;
}

int dry_run(const struct options *options, const struct meeting *meeting, int size)
{
    struct round round = dry_run_round(options, meeting, size);
    struct placement *placement = NULL;
    struct program program;
    struct wrapper wrapper = { .ranks = NULL };
    int code = program_find(&program, options);

    if (code == 0)
        code = wrapper_find(&wrapper, options);
    if (code == 0)
        code = placement_create(&placement, options, size, "");
    round.placement = placement;
    round.serves_pmi = code == 0 && serves_pmi(options, &program);
    if (code == 0)
        code = dry_run_workers(options, &program, &wrapper, &round);
    wrapper_free(&wrapper);
    placement_destroy(placement);
    return code;
}
