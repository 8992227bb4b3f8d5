/* SPDX-License-Identifier: Apache-2.0 */
/* dry_run.c - what would be executed, in which environment, as a script for sh; nothing is
 * executed, and no socket is opened.
 *
 * Words and variables come from where a run has them, so they can't differ from it.  What only a
 * run can know (a port, a new name, a secret) the script chooses; ranks of a job of several nodes
 * are those it has if each node starts as many workers.  Without ctrun rank 0 serves the store, no
 * failure ends the other workers, and the output goes nowhere else. */
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
    printf("# rank %d of %d, local rank %d", round->base + local_rank, round->world, local_rank);
    printf("\n# stdout: %s; stderr: %s", stream_of(options, round, local_rank, STDOUT_FILENO),
           stream_of(options, round, local_rank, STDERR_FILENO));
    if (round->placement && round->placement->place[local_rank].bound) {
        char cpus[CPUS_TEXT];

        cpus_write(&round->placement->place[local_rank].cpus, cpus);
        printf("; CPUs: %s", cpus);
    }
    printf("\n");
}

/* What a run would choose: it begins with this, and the script has a variable for it.  A port has
 * no mark, but is 0. */
static const struct {
    const char *name, *mark, *variable;
} chosen[] = { { "MASTER_PORT", "0", "$port" },
               { "TORCHELASTIC_RUN_ID", "<new>", "$new" },
               { "CT_GENERATION", "<new>", "$new" },
               { "TORCHELASTIC_ERROR_FILE", "<new folder>", "$folder" } };

/* The secret is exported, so that it stands on no command line. */
static int is_exported(const char *entry)
{
    return !strncmp(entry, "CT_STORE_SECRET=", strlen("CT_STORE_SECRET="));
}

static void print_variable(const char *entry)
{
    const size_t name = strcspn(entry, "=");
    const char *value = entry + name + 1;

    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
        const size_t mark = strlen(chosen[i].mark);

        if (strlen(chosen[i].name) != name || strncmp(entry, chosen[i].name, name) != 0
            || strncmp(value, chosen[i].mark, mark) != 0)
            continue;
        printf("%s=\"%s\"", chosen[i].name, chosen[i].variable);
        if (value[mark])
            shell_quote(stdout, value + mark);
        return;
    }
    if (!strncmp(entry, "TORCHELASTIC_USE_AGENT_STORE=", name + 1))
        printf("TORCHELASTIC_USE_AGENT_STORE=False");
    else
        shell_quote(stdout, entry);
}

/* What ctrun sets, over what it inherits. */
static void print_variables(const struct worker_env *env, char **entries)
{
    for (char **entry = entries + env->inherited; *entry; entry++) {
        if (is_exported(*entry))
            continue;
        printf("  ");
        print_variable(*entry);
        printf(" \\\n");
    }
}

static int has_input(const struct options *options, int rank)
{
    return options->stdin_to.kind == STDIN_ALL
           || (options->stdin_to.kind == STDIN_RANK && options->stdin_to.rank == rank);
}

static void print_binding(const struct round *round, int local_rank)
{
    char cpus[CPUS_TEXT];

    if (!round->placement || !round->placement->place[local_rank].bound)
        return;
    cpus_write(&round->placement->place[local_rank].cpus, cpus);
    printf("taskset -c %s ", cpus);
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
        print_binding(env->round, local_rank);
        shell_print(stdout, argv);
        printf(" <%s &\nworkers=\"$workers $!\"\n",
               has_input(options, env->round->base + local_rank) ? "&3" : "/dev/null");
        status = 0;
    }
    free(entries);
    free(argv);
    return status;
}

/* In ctrun's order. */
static void print_secret(const struct options *options, const struct round *round)
{
    const char *file = options->store_secret_file;

    if (round->secret->size == 0)
        return;
    printf("export CT_STORE_SECRET=\"${CT_STORE_SECRET:-$(");
    if (file) {
        printf("cat ");
        shell_quote(stdout, file);
    } else {
        printf("od -An -N32 -tx1 /dev/urandom | tr -d ' \\n'");
    }
    printf(")}\"\n");
}

/* The braces have a shell read all of it before the workers begin, which may read its input. */
static void print_beginning(const struct options *options, const struct round *round)
{
    char *folder = getcwd(NULL, 0);

    printf(
        "#!/bin/sh\n"
        "# What ctrun would start here.  As a script it does so without ctrun: rank 0 serves the "
        "store,\n"
        "# a failure ends no other worker, and all output comes here.  What ctrun does with it "
        "stands "
        "there.\n"
        "{\n");
    if (round->serves_pmi)
        printf("echo 'PMI, which these workers need, is served by ctrun only' >&2; exit 1\n");
    printf("cd ");
    shell_quote(stdout, folder ? folder : ".");
    printf(" || exit\n");
    if (round->port == 0)
        printf("port=$((20000 + $$ %% 10000))\n");
    print_secret(options, round);
    printf("new=$(date +%%s)-$$\n"
           "folder=$(mktemp -d)\n"
           "workers=\n"
           "trap 'rm -rf \"$folder\"' EXIT\n"
           "trap 'kill $workers 2>/dev/null; exit 130' INT TERM HUP\n"
           "exec 3<&0\n");
    free(folder);
}

static int print_workers(const struct options *options, const struct program *program,
                         const struct wrapper *wrapper, const struct round *round)
{
    struct worker_env env;
    int status = worker_env_create(&env, options, round);

    print_beginning(options, round);
    for (int i = 0; i < round->size && status == 0; i++)
        status = print_worker(options, program, wrapper, &env, i);
    printf("code=0\n"
           "for worker in $workers; do\n"
           "    wait $worker\n"
           "    ended=$?\n"
           "    [ $code != 0 ] || code=$ended\n"
           "done\n"
           "exit $code\n"
           "}\n");
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
