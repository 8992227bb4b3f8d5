/* SPDX-License-Identifier: Apache-2.0 */
/* dry_run.c - what would be executed, in which environment; nothing is, and no socket is opened.
 * It is for reading: a shell would run the workers one after the other, without a store.  Each
 * command alone is one that a shell takes.
 *
 * Words and variables come from where a run has them, so they can't differ from it.  What only a
 * run can know (a free port, a new name) stands in angle brackets; ranks of a job of several
 * nodes are those it has if each node starts as many workers. */
#include "launcher/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/placement/placement.h"
#include "launcher/stdio/worker_stream.h"
#include "launcher/util/shell_words.h"
#include "launcher/workers/debug_wrapper.h"
#include "launcher/workers/program.h"
#include "launcher/workers/worker_env.h"
#include "runtime/util/log.h"

static const struct run_folder no_files = { .path = "<new folder>" };

/* Alone, ctrun makes one; several nodes have one only if they were given it. */
static int has_secret(const struct options *options)
{
    return options->nnodes.max == 1 || options->store_secret_file || getenv("CT_STORE_SECRET");
}

/* The job as far as it is known. */
static struct round round_of(const struct options *options, const struct meeting *meeting, int size)
{
    static const struct secret kept = { .bytes = "<secret>", .size = 8 }, none = { .size = 0 };
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
                           .port = meeting->port,
                           .run_id = meeting->kind != MEET_ALONE && *options->rdzv_id
                                         ? options->rdzv_id
                                         : "<new>",
                           .generation = "<new>",
                           .secret = has_secret(options) ? &kept : &none,
                           .folder = &no_files };
}

static const char *stream_of(const struct options *options, const struct round *round,
                             int local_rank, int to)
{
    const struct origin origin = { .rank = round->base + local_rank,
                                   .local_rank = local_rank,
                                   .world = round->world,
                                   .to = to,
                                   .terminal = isatty(to),
                                   .files = !options->log_dir
                                            || strcmp(options->log_dir, "/dev/null") != 0 };
    const struct route route = route_of(options, &origin);

    if (route.file)
        return route.shown ? "a file, and here" : "a file";
    return route.nowhere || (route.through && !route.shown) ? "nowhere" : "here";
}

static void say_where(const struct options *options, const struct round *round, int local_rank)
{
    char *folder = getcwd(NULL, 0);

    printf("# rank %d of %d, local rank %d, in ", round->base + local_rank, round->world,
           local_rank);
    shell_quote(stdout, folder ? folder : "?");
    printf("\n# stdout: %s; stderr: %s", stream_of(options, round, local_rank, STDOUT_FILENO),
           stream_of(options, round, local_rank, STDERR_FILENO));
    if (round->placement && round->placement->place[local_rank].bound) {
        char cpus[CPUS_TEXT];

        cpus_write(&round->placement->place[local_rank].cpus, cpus);
        printf("; CPUs: %s", cpus);
    }
    printf("\n");
    free(folder);
}

/* What ctrun sets, over what it inherits. */
static void print_variables(const struct worker_env *env, char **entries)
{
    for (char **entry = entries + env->inherited; *entry; entry++) {
        if (!strcmp(*entry, "MASTER_PORT=0"))
            printf("  'MASTER_PORT=<any free port>' \\\n");
        else if (!strcmp(*entry, "PMI_FD=0"))
            printf("  'PMI_FD=<new>' \\\n");
        else {
            printf("  ");
            shell_quote(stdout, *entry);
            printf(" \\\n");
        }
    }
}

static int print_worker(const struct options *options, const struct program *program,
                        const struct wrapper *wrapper, const struct worker_env *env, int local_rank)
{
    char **argv = program_argv(program, local_rank);
    char **entries = worker_env_of(env, local_rank);
    const char *path = program->path;
    int status = -1;

    if (wrapper_has(wrapper, env->round->base + local_rank, env->round->world)) {
        argv = wrapper_argv(wrapper, path, argv);
        path = wrapper->path;
    }
    if (argv && entries) {
        say_where(options, env->round, local_rank);
        printf("env \\\n");
        print_variables(env, entries);
        argv[0] = (char *)path;
        printf("  ");
        shell_print(stdout, argv);
        printf("\n");
        status = 0;
    }
    free(entries);
    free(argv);
    return status;
}

static int print_workers(const struct options *options, const struct program *program,
                         const struct wrapper *wrapper, const struct round *round)
{
    struct worker_env env;
    int status = worker_env_create(&env, options, round);

    printf("# For reading: ctrun starts these at the same time, and chooses what stands in <>.\n");
    for (int i = 0; i < round->size && status == 0; i++)
        status = print_worker(options, program, wrapper, &env, i);
    if (status < 0)
        log_line(LOG_ERROR, "out of memory");
    worker_env_destroy(&env);
    return status < 0 ? 1 : 0;
}

int dry_run(const struct options *options, const struct meeting *meeting, int size)
{
    struct round round = round_of(options, meeting, size);
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
        code = print_workers(options, &program, &wrapper, &round);
    wrapper_free(&wrapper);
    placement_destroy(placement);
    return code;
}
