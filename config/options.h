/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the values of all options (option_table.h).
 *
 * The command line overrides the environment, the environment job.ini, job.ini the scheduler or
 * launcher that started this process (surroundings.h), and that one the row's default.  An empty
 * environment variable counts as unset.  For --explain each setting records its source. */
#ifndef CONFIG_OPTIONS_H
#define CONFIG_OPTIONS_H

#include <stdio.h>

#include "config/job_file.h"
#include "config/option_table.h"
#include "config/values/host_list.h"
#include "config/values/parse_nodes.h"
#include "config/values/parse_number.h"
#include "config/values/parse_output.h"
#include "config/values/parse_placement.h"
#include "config/values/parse_restart.h"
#include "config/values/parse_status.h"

struct setting {
    enum { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_COMMAND_LINE } from;
    const char *text;     /* NULL: not given, and the option has no default */
    const char *variable; /* set with FROM_ENVIRONMENT */
    int line;             /* set with FROM_FILE */
    const char *set_by;   /* the scheduler or launcher that set the variable; NULL: the user */
};

/* Facts that surroundings.c found out. */
struct surroundings {
    int srun_nodes; /* number of nodes on which ctrun starts itself by srun; 0: it does not use srun
                     */
    const char *exchange_of; /* launcher that tells where node 0 is; NULL: not needed */
    int is_host_of_job;      /* a ctrun with --hosts has started this one */
    const char *host_names;  /* hosts of all nodes, separated by commas; NULL: not known */
    int port_fd; /* descriptor to which node 0 writes its port for the ctrun of --hosts; 0: none */
    /* Bits 1 and 2: the standard output and error of the ctrun of --hosts are terminals. */
    int terminals;
    int one_output; /* one user reads the output of all nodes, so a message of one node is enough */
    int behind_srun; /* our own srun started this ctrun; a SIGINT that comes by srun then means
                        SIGTERM */
    /* Option that gives this ctrun more processors; %d stands for their number.  NULL: not
     * known. */
    const char *more_cpus;
    char texts[10][300]; /* values of the settings that surroundings.c gave */
    int used;
};

struct options {
    struct nproc nproc;
    struct nodes_range nnodes;
    int node_rank;
    int standalone, no_python, module, run_path, legacy_launch, use_env;
    enum mpi_service mpi;
    int explain, dry_run, virtual_local_rank, no_fold, quiet, short_report;
    const char *hosts, *hostfile; /* NULL: not given */
    const char *ssh;
    const char *master_addr, *local_addr, *iface; /* NULL: not given */
    int master_port;                              /* 0: any free port */
    const char *rdzv_backend, *rdzv_endpoint, *rdzv_id;
    struct rdzv_conf rdzv_conf;
    const char *role, *job;
    struct restart_budget max_restarts;
    struct restart_policy restart;
    struct on_failure on_failure;
    int shutdown_timeout, stall;
    const char *deadline; /* NULL: not given */
    int deadline_margin;  /* seconds before the end of the Slurm job */
    struct status_at status;
    const char *events; /* a file; NULL: not given */
    const char *trace;  /* a file; NULL: not given */
    size_t trace_size;
    const char *log_dir; /* NULL: not given */
    struct stream_spec redirects, tee;
    const char *log_line_prefix_template, *local_ranks_filter;
    const char *duplicate_stdout_filters, *duplicate_stderr_filters; /* NULL: not given */
    const char *show; /* NULL: the output of all ranks */
    const char *prefix;
    struct stdin_to stdin_to;
    enum numa_binding numa_binding;
    const char *bind, *gpus; /* NULL: not given */
    enum report_form report;
    struct exec_on exec_on;
    double monitor_interval;
    const char *start_method, *logs_specs, *print_completion;
    const char *event_log_handler;
    const char *store_secret_file; /* NULL: not given */
    int encrypt;
    struct networks store_allow;
    size_t store_memory, store_request;
    int store_clients;
    struct signals signals;
    char **program; /* the program and its arguments, NULL at the end; points into argv */
    struct setting settings[OPTIONS];
    struct surroundings surroundings;
    struct jobfile file; /* its sections [env] and [collectives] are for the workers */
};

enum outcome {
    OPTIONS_RUN,
    OPTIONS_SHOW_HELP,
    OPTIONS_SHOW_VERSION,
    OPTIONS_SHOW_COMPLETION,
    OPTIONS_WRONG /* an error of usage: ctrun ends with 2 */
};

/* Reads all sources.  OPTIONS_WRONG: error has a sentence.  The caller must call options_free() in
 * every case. */
enum outcome options_read(struct options *options, char **argv, char *error, size_t size);
void options_free(struct options *options);

/* Writes where the value comes from: "--nproc-per-node", "PET_NPROC_PER_NODE", "job.ini:3" or
 * "default". */
void setting_source(const struct options *options, enum option option, char *text, size_t size);
/* Writes the setting as the user gave it: "--tee=3", "PET_TEE=3" or "job.ini:4: tee = 3". */
void setting_words(const struct options *options, enum option option, char *text, size_t size);

/* Reads argv as argparse does, into the settings and ->program.  For options.c. */
enum outcome cmdline_read(struct options *options, char **argv, char *error, size_t size);

#endif
