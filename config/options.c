/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - the rows, and how a value is chosen among its four sources.
 *
 * A new option is a row here, its name in enum option and a field in struct
 * options; parsing, job.ini, PET_ variables, --help and --explain follow. */
#include "config/options.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD(name) offsetof(struct options, name)

/* clang-format off */
static const struct option_row rows[OPTIONS] = {
    [OPTION_NPROC_PER_NODE] = {
        "nproc-per-node", NULL, 0, "N|auto|cpu|gpu", "1", { "PET_NPROC_PER_NODE" }, 0,
        parse_nproc, FIELD(nproc), "workers to start: a number, one per CPU or GPU, or auto" },
    [OPTION_NNODES] = {
        "nnodes", NULL, 0, "N|MIN:MAX", "1:1", { "PET_NNODES" }, 0,
        parse_nnodes, FIELD(nnodes), "nodes of the job; ctrun runs once on each" },
    [OPTION_NODE_RANK] = {
        "node-rank", NULL, 0, "N", "0", { "PET_NODE_RANK" }, 0,
        parse_node_rank, FIELD(node_rank), "rank of this node; node 0 hosts the store" },
    [OPTION_STANDALONE] = {
        "standalone", NULL, 0, NULL, "0", { "PET_STANDALONE" }, 0,
        parse_switch, FIELD(standalone), "one node, any free port, whatever other options say" },
    [OPTION_MASTER_ADDR] = {
        "master-addr", NULL, 0, "HOST", NULL, { "PET_MASTER_ADDR" }, 0,
        parse_text, FIELD(master_addr), "where the store listens (127.0.0.1)" },
    [OPTION_MASTER_PORT] = {
        "master-port", NULL, 0, "PORT", "0", { "PET_MASTER_PORT" }, 0,
        parse_port, FIELD(master_port), "its port; 0: any free one, or 29500 with several nodes" },
    [OPTION_LOCAL_ADDR] = {
        "local-addr", NULL, 0, "HOST", NULL, { "PET_LOCAL_ADDR" }, 0,
        parse_text, FIELD(local_addr), "address of this node, when --master-addr is not given" },
    [OPTION_RDZV_ID] = {
        "rdzv-id", NULL, 0, "ID", "none", { "PET_RDZV_ID" }, 0,
        parse_text, FIELD(rdzv_id), "name of the job, with --master-port; else a random one" },
    [OPTION_ROLE] = {
        "role", NULL, 0, "NAME", "default", { "PET_ROLE" }, 0,
        parse_text, FIELD(role), "role of the workers (ROLE_NAME)" },
    [OPTION_NO_PYTHON] = {
        "no-python", NULL, 0, NULL, "0", { "PET_NO_PYTHON" }, 0,
        parse_switch, FIELD(no_python), "execute the program itself, whatever it is" },
    [OPTION_MODULE] = {
        "module", NULL, 'm', NULL, "0", { "PET_MODULE" }, 0,
        parse_switch, FIELD(module), "the program is a Python module: python -u -m PROGRAM" },
    [OPTION_MAX_RESTARTS] = {
        "max-restarts", NULL, 0, "N", "0", { "PET_MAX_RESTARTS" }, 0,
        parse_restarts, FIELD(max_restarts), "times to start all workers again after a failure" },
    [OPTION_SHUTDOWN_TIMEOUT] = {
        "shutdown-timeout", "grace", 0, "SECONDS", "30",
        { "PET_SHUTDOWN_TIMEOUT", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT" }, 0,
        parse_seconds, FIELD(shutdown_timeout), "from asking workers to stop to SIGKILL" },
    [OPTION_SIGNALS_TO_HANDLE] = {
        "signals-to-handle", NULL, 0, "LIST", "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
        { "PET_SIGNALS_TO_HANDLE" }, 0,
        parse_signals, FIELD(signals), "signals that are forwarded and stop the job" },
    [OPTION_STORE_SECRET_FILE] = {
        "store-secret-file", NULL, 0, "FILE", NULL, { "CT_STORE_SECRET_FILE" }, 0,
        parse_text, FIELD(store_secret_file),
        "the secret that other hosts must know to use the store; chmod 600, the same on all nodes" },
    [OPTION_STORE_ALLOW] = {
        "store-allow", NULL, 0, "any|NETWORKS", NULL, { "CT_STORE_ALLOW" }, 0,
        parse_networks, FIELD(store_allow),
        "who may use the store without it: 10.1.0.0/16,fd00::/8; Python agents need that" },
    [OPTION_STORE_MEMORY] = {
        "store-memory", NULL, 0, "SIZE", "4G", { "CT_STORE_MEMORY" }, 0,
        parse_bytes, FIELD(store_memory), "that the store's clients may make it hold in all" },
    [OPTION_STORE_REQUEST] = {
        "store-request", NULL, 0, "SIZE", "1G", { "CT_STORE_REQUEST" }, 0,
        parse_bytes, FIELD(store_request), "of one request to the store" },
    [OPTION_STORE_CLIENTS] = {
        "store-clients", NULL, 0, "N", "65536", { "CT_STORE_CLIENTS" }, 0,
        parse_count, FIELD(store_clients), "connections to the store at a time" },
    [OPTION_JOB] = {
        "job", NULL, 0, "FILE", NULL, { "CT_JOB" }, 1,
        parse_text, FIELD(job), "read FILE for options and variables (./job.ini if it is there)" },
    [OPTION_EXPLAIN] = {
        "explain", NULL, 0, NULL, "0", { NULL }, 1,
        parse_switch, FIELD(explain), "print each value and where it came from; run nothing" },
    [OPTION_VERSION] = {
        "version", NULL, 0, NULL, NULL, { NULL }, 1,
        NULL, 0, "print the version" },
    [OPTION_HELP] = {
        "help", NULL, 'h', NULL, NULL, { NULL }, 1,
        NULL, 0, "print this" },
};
/* clang-format on */

const struct option_row *option_row(int option)
{
    return &rows[option];
}

/* name against a dashed one: as it is, or with every dash an underscore. */
static int spells(const char *name, const char *dashed)
{
    const char between = strchr(name, '_') ? '_' : '-';

    for (; *name && *dashed; name++, dashed++)
        if (*name != (*dashed == '-' ? between : *dashed))
            return 0;
    return *name == *dashed;
}

enum option option_named(const char *name)
{
    for (enum option i = 0; i < OPTIONS; i++)
        if (spells(name, rows[i].name) || (rows[i].alias && spells(name, rows[i].alias)))
            return i;
    return OPTIONS;
}

static int wrong(char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int wrong(char *error, size_t size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, size, format, args);
    va_end(args);
    return -1;
}

static const char *environment(const char *variable)
{
    const char *text = variable ? getenv(variable) : NULL;

    return text && *text ? text : NULL;
}

/* What the command line did not say, the environment may. */
static void take_environment(struct options *options, enum option option)
{
    struct setting *setting = &options->settings[option];

    for (int i = 0; i < 2 && setting->from < FROM_ENVIRONMENT; i++) {
        const char *variable = rows[option].variables[i], *text = environment(variable);

        if (text)
            *setting = (struct setting){ FROM_ENVIRONMENT, text, variable, 0 };
    }
}

/* Opens the job file that was asked for, or the one that lies here. */
static int find_file(struct options *options, char *error, size_t size)
{
    const char *path;

    take_environment(options, OPTION_JOB);
    path = options->settings[OPTION_JOB].text;
    if (!path && access("job.ini", F_OK) == 0)
        path = "job.ini";
    return path ? jobfile_read(&options->file, path, error, size) : 0;
}

/* The [ctrun] section; the others are only checked for their names. */
static int take_file(struct options *options, char *error, size_t size)
{
    const struct jobfile *file = &options->file;

    for (int i = 0; i < file->count; i++) {
        const struct jobfile_entry *entry = &file->entries[i];
        enum option option;

        if (!strcmp(entry->section, "env") || !strcmp(entry->section, "collectives"))
            continue;
        if (strcmp(entry->section, "ctrun") != 0)
            return wrong(error, size,
                         "%s:%d: unknown section [%s]; there are [ctrun], [env], [collectives]",
                         file->path, entry->line, entry->section);
        option = option_named(entry->key);
        if (option == OPTIONS || rows[option].command_line_only)
            return wrong(error, size,
                         "%s:%d: unknown key '%s' in [ctrun]; its keys are the options that "
                         "ctrun --help lists",
                         file->path, entry->line, entry->key);
        if (options->settings[option].from <= FROM_FILE)
            options->settings[option] =
                (struct setting){ FROM_FILE, entry->value, NULL, entry->line };
    }
    return 0;
}

static int parse_settings(struct options *options, char *error, size_t size)
{
    for (enum option i = 0; i < OPTIONS; i++) {
        const struct setting *setting = &options->settings[i];
        struct why why;
        char source[300];

        if (!rows[i].parse || !setting->text
            || rows[i].parse(setting->text, (char *)options + rows[i].field, &why) == 0)
            continue;
        setting_source(options, i, source, sizeof source);
        return wrong(error, size, "%s: %s%s%s", source,
                     setting->from == FROM_FILE ? rows[i].name : "",
                     setting->from == FROM_FILE ? ": " : "", why.text);
    }
    if (options->module && options->no_python)
        return wrong(error, size,
                     "-m runs a Python module: it can't go with the "
                     "'--no-python' flag");
    if (options->node_rank >= options->nnodes && options->nnodes > 1)
        return wrong(error, size, "--node-rank=%d: with --nnodes=%d it is 0 to %d",
                     options->node_rank, options->nnodes, options->nnodes - 1);
    if (options->standalone)
        options->nnodes = 1;
    return 0;
}

enum outcome options_read(struct options *options, char **argv, char *error, size_t size)
{
    enum outcome outcome;

    *options = (struct options){ 0 };
    for (enum option i = 0; i < OPTIONS; i++)
        options->settings[i].text = rows[i].fallback;
    outcome = cmdline_read(options, argv, error, size);
    if (outcome != OPTIONS_RUN)
        return outcome;
    if (find_file(options, error, size) < 0 || take_file(options, error, size) < 0)
        return OPTIONS_WRONG;
    for (enum option i = 0; i < OPTIONS; i++)
        take_environment(options, i);
    return parse_settings(options, error, size) < 0 ? OPTIONS_WRONG : OPTIONS_RUN;
}

void options_free(struct options *options)
{
    jobfile_free(&options->file);
}

void setting_source(const struct options *options, enum option option, char *text, size_t size)
{
    const struct setting *setting = &options->settings[option];

    if (setting->from == FROM_COMMAND_LINE)
        snprintf(text, size, "--%s", rows[option].name);
    else if (setting->from == FROM_ENVIRONMENT)
        snprintf(text, size, "%s", setting->variable);
    else if (setting->from == FROM_FILE)
        snprintf(text, size, "%s:%d", options->file.path, setting->line);
    else
        snprintf(text, size, "default");
}

void options_help(FILE *out)
{
    fputs("usage: ctrun [options] program [arguments]\n\n"
          "Starts the workers of a job, meets them at a store, watches them, and leaves\n"
          "none behind.  A program is anything that can be executed; *.py files and -m\n"
          "modules are run by $PYTHON_EXEC, else python, else python3.\n\n",
          out);
    for (enum option i = 0; i < OPTIONS; i++) {
        const struct option_row *row = &rows[i];
        char left[80];
        int used = snprintf(left, sizeof left, "  ");

        if (row->letter)
            used += snprintf(left + used, sizeof left - (size_t)used, "-%c, ", row->letter);
        used += snprintf(left + used, sizeof left - (size_t)used, "--%s", row->name);
        if (row->alias)
            used += snprintf(left + used, sizeof left - (size_t)used, ", --%s", row->alias);
        if (row->value)
            snprintf(left + used, sizeof left - (size_t)used, "=%s", row->value);
        fprintf(out, "%-38s %s%s\n", left,
                strlen(left) > 38 ? "\n                                       " : "", row->help);
        if (row->value && row->fallback)
            fprintf(out, "%39sdefault %s\n", "", row->fallback);
    }
    fputs("\nUnderscores do for dashes.  --nnodes is also $PET_NNODES, and so on; a job.ini\n"
          "sets options under [ctrun], variables of the workers under [env] and\n"
          "[collectives].  Command line > environment > job.ini > default.\n"
          "Exit code: that of the first worker that failed (128 + signal); 2 for wrong\n"
          "usage, 126 and 127 as the shell.\n",
          out);
}
