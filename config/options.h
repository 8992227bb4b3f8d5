/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - every option of ctrun: one row each, and what the user chose.
 *
 * The value in force is the command line's, else the environment's, else
 * job.ini's, else the row's own.  An empty environment variable counts as
 * unset.  Each setting remembers where it came from, for --explain. */
#ifndef CONFIG_OPTIONS_H
#define CONFIG_OPTIONS_H

#include <stdio.h>

#include "config/jobfile.h"
#include "config/values.h"

/* In the order of --help and --explain. */
enum option {
    OPTION_NPROC_PER_NODE,
    OPTION_NNODES,
    OPTION_NODE_RANK,
    OPTION_STANDALONE,
    OPTION_MASTER_ADDR,
    OPTION_MASTER_PORT,
    OPTION_LOCAL_ADDR,
    OPTION_RDZV_ID,
    OPTION_ROLE,
    OPTION_NO_PYTHON,
    OPTION_MODULE,
    OPTION_MAX_RESTARTS,
    OPTION_SHUTDOWN_TIMEOUT,
    OPTION_SIGNALS_TO_HANDLE,
    OPTION_STORE_SECRET_FILE,
    OPTION_STORE_ALLOW,
    OPTION_STORE_MEMORY,
    OPTION_STORE_REQUEST,
    OPTION_STORE_CLIENTS,
    OPTION_JOB,
    OPTION_EXPLAIN,
    OPTION_VERSION,
    OPTION_HELP,
    OPTIONS
};

struct option_row {
    const char *name;  /* the dashed spelling, without "--"; underscores work too */
    const char *alias; /* another name, or NULL */
    char letter;       /* -m, or 0 */
    const char *value; /* what --help calls its value; NULL: a switch */
    const char *fallback;
    const char *variables[2]; /* of the environment, the stronger first; NULL: none */
    int command_line_only;    /* no key of job.ini */
    value_parser *parse;      /* NULL: acts as soon as it is met (--help) */
    size_t field;             /* offset in struct options */
    const char *help;
};

struct setting {
    enum { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_COMMAND_LINE } from;
    const char *text;     /* NULL: none given, and no default */
    const char *variable; /* FROM_ENVIRONMENT */
    int line;             /* FROM_FILE */
};

struct options {
    struct nproc nproc;
    int nnodes, node_rank;
    int standalone, no_python, module, explain;
    const char *master_addr, *local_addr; /* NULL: not given */
    int master_port;                      /* 0: any free one */
    const char *rdzv_id, *role, *job;
    int max_restarts, shutdown_timeout;
    const char *store_secret_file; /* NULL: none */
    struct networks store_allow;
    size_t store_memory, store_request;
    int store_clients;
    struct signals signals;
    char **program; /* the program and its arguments, NULL at the end; points into argv */
    struct setting settings[OPTIONS];
    struct jobfile file; /* its [env] and [collectives] are for the workers */
};

enum outcome { OPTIONS_RUN, OPTIONS_SHOW_HELP, OPTIONS_SHOW_VERSION, OPTIONS_WRONG };

const struct option_row *option_row(int option);

/* Reads all of it.  OPTIONS_WRONG leaves a sentence in error.  options_free()
 * is owed in every case. */
enum outcome options_read(struct options *options, char **argv, char *error, size_t size);
void options_free(struct options *options);

/* "--nproc-per-node", "PET_NPROC_PER_NODE", "job.ini:3" or "default". */
void setting_source(const struct options *options, enum option option, char *text, size_t size);

void options_help(FILE *out);

/* Below: for cmdline.c and tests. */

/* The row of a name spelled all with dashes or all with underscores; OPTIONS if
 * there is none. */
enum option option_named(const char *name);

/* argv as argparse reads it: fills the settings it names and ->program. */
enum outcome cmdline_read(struct options *options, char **argv, char *error, size_t size);

#endif
