/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_options.c - the command line, the environment and job.ini, as main() reads them.
 *
 * The input is text: arguments, one a line; then, behind a line "--env", variables as
 * NAME=VALUE; then, behind a line "--ini", the job file.  It lies in memory with a path.  Only
 * variables that belong to an option are set. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/rendezvous_options.h"
#include "launcher/cli/cli.h"
#include "launcher/job/no_effect.h"
#include "launcher/workers/worker_env.h"
#include "tests/fuzz/input.h"

enum { MOST_WORDS = 64 };

struct parts {
    char *text, *env, *ini; /* the parts; NULL: there is none */
    size_t ini_size;
};

/* ---- The input's parts ---------------------------------------------------------- */

/* Cuts *text behind its first line; NULL: it has none. */
static char *line_of(char **text)
{
    char *line = *text, *end = line ? strchr(line, '\n') : NULL;

    *text = end ? end + 1 : NULL;
    if (end)
        *end = '\0';
    return line && *line ? line : *text ? line_of(text) : NULL;
}

/* What is behind a line of that name; the part before ends with it. */
static char *cut_at(char *text, const char *line)
{
    char *at = text ? strstr(text, line) : NULL;

    if (at)
        *at = '\0';
    return at ? at + strlen(line) : NULL;
}

static void split(struct parts *in, const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *ini;

    holds(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    ini = memmem(text, size, "--ini\n", 6); /* it may have 0 bytes */
    in->text = text;
    in->ini = ini ? ini + 6 : NULL;
    in->ini_size = ini ? size - (size_t)(in->ini - text) : 0;
    if (ini)
        *ini = '\0';
    in->env = cut_at(text, "--env\n");
}

/* A file of somebody else's is not to be read. */
static int names_a_file(const char *word)
{
    return !strncmp(word, "--j", 3);
}

static void words_of(struct parts *in, char **argv, char *job)
{
    int count = 0;
    char *word;

    argv[count++] = "ctrun";
    if (in->ini)
        argv[count++] = job;
    while (count < MOST_WORDS && (word = line_of(&in->text)))
        if (!names_a_file(word))
            argv[count++] = word;
    argv[count] = NULL;
}

/* ---- The environment ------------------------------------------------------------ */

/* Calls it with each variable that an option has. */
static void each_variable(void (*call)(const char *name, const char *line), const char *line)
{
    for (int i = 0; i < OPTIONS; i++)
        for (int n = 0; n < 2 && option_row(i)->variables[n]; n++)
            call(option_row(i)->variables[n], line);
}

static void set_if_meant(const char *name, const char *line)
{
    const size_t length = strlen(name);

    if (!strncmp(line, name, length) && line[length] == '=' && strcmp(name, "CT_JOB") != 0)
        setenv(name, line + length + 1, 1);
}

static void unset(const char *name, const char *line)
{
    (void)line;
    unsetenv(name);
}

static void set_environment(struct parts *in)
{
    const char *line;

    while ((line = line_of(&in->env)))
        each_variable(set_if_meant, line);
}

/* ---- What must hold --------------------------------------------------------------- */

static void check(const struct options *o)
{
    char source[300], name[64];

    holds(o->program && o->program[0]);
    holds(o->nproc.kind != NPROC_NUMBER || o->nproc.number >= 0); /* 0: it serves a job */
    holds(o->nnodes.min >= 1 && o->nnodes.max >= o->nnodes.min);
    holds(o->master_port >= 0 && o->master_port <= 65535 && o->node_rank >= 0);
    holds(o->max_restarts.most >= 0 && o->shutdown_timeout >= 0 && o->monitor_interval > 0);
    holds(o->store_clients >= 1 && o->store_allow.count >= 0 && o->store_allow.count <= NETWORKS);
    for (enum option i = 0; i < OPTIONS; i++)
        setting_source(o, i, source, sizeof source);
    for (int i = 0; i < o->file.count; i++) {
        holds(o->file.entries[i].line > 0);
        worker_env_name(&o->file.entries[i], name, sizeof name);
    }
    worker_env_conflict(&o->file);
    if (o->show)
        ranks_have(o->show, 3, 8);
    rank_filter_has(o->local_ranks_filter, 3);
}

static void read_all(char **argv)
{
    struct options options;
    struct meeting meeting;
    char error[1024] = "";
    const enum outcome outcome = options_read(&options, argv, error, sizeof error);

    holds(outcome != OPTIONS_WRONG || error[0]);
    if (outcome == OPTIONS_RUN) {
        check(&options);
        error[0] = '\0';
        holds(variables_check(&options.file, error, sizeof error) == 0 || error[0]);
        error[0] = '\0';
        if (options_meeting(&options, &meeting, error, sizeof error) == OPTIONS_RUN) {
            no_effect_words(&options, &meeting, 3);
            no_effect_ranks(&options, 8);
            variables_warn(&options.file);
        } else {
            holds(error[0]);
        }
    }
    options_free(&options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1;
    static char job[64];
    struct parts in;
    char *argv[MOST_WORDS + 1], *all;

    if (file < 0) {
        holds((file = memfd_create("job.ini", MFD_CLOEXEC)) >= 0);
        snprintf(job, sizeof job, "--job=/proc/self/fd/%d", file);
    }
    split(&in, data, size);
    all = in.text;
    holds(ftruncate(file, 0) == 0);
    holds(!in.ini || pwrite(file, in.ini, in.ini_size, 0) == (ssize_t)in.ini_size);
    set_environment(&in);
    words_of(&in, argv, job);
    read_all(argv);
    each_variable(unset, NULL);
    free(all);
    return 0;
}
