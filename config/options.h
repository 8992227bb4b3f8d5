/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the values of all options (option_table.h).
 *
 * The sources of a value are, in descending precedence, the command line, the environment, job.ini,
 * the scheduler or launcher that started this process (surroundings.h), and the default in the
 * option's row.  An empty environment variable counts as unset.  Each setting records its source,
 * for --explain. */
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
    const char *text;     /* NULL if the option is not given and has no default */
    const char *variable; /* name of the variable, if FROM_ENVIRONMENT */
    int line;             /* line of the job file, if FROM_FILE */
    const char *set_by;   /* scheduler or launcher that set the variable; NULL if the user set it */
};

/* Facts that surroundings.c found out about how this ctrun was started. */
struct surroundings {
    int srun_nodes; /* number of nodes on which ctrun starts itself by srun; 0 if it does not */
    const char *exchange_of; /* launcher that tells where node 0 is; NULL if not needed */
    int is_host_of_job;      /* 1 if a ctrun with --hosts has started this ctrun */
    const char *host_names;  /* hosts of all nodes, separated by commas; NULL if unknown */
    /* descriptor to which node 0 writes its port for the ctrun of --hosts; 0 if none */
    int port_fd;
    /* 1 if the standard output of the ctrun of --hosts is a terminal, plus 2 if its standard error
     * is a terminal. */
    int terminals;
    /* 1 if one user reads the output of all nodes, so that one node's message is enough */
    int one_output;
    /* 1 if ctrun's own srun started this ctrun; a SIGINT that comes from srun then means SIGTERM */
    int behind_srun;
    /* Option that gives this ctrun more processors, with %d in place of their number.  NULL if
     * unknown. */
    const char *more_cpus;
    char texts[10][300]; /* values of the settings that surroundings.c set */
    int used;
};

struct options {
    struct nproc nproc;
    struct nodes_range nnodes;
    int node_rank;
    int standalone, no_python, module, run_path, legacy_launch, use_env;
    enum mpi_service mpi;
    int explain, dry_run, virtual_local_rank, no_fold, quiet, short_report;
    const char *hosts, *hostfile; /* NULL if not given */
    const char *ssh;
    const char *master_addr, *local_addr, *iface; /* NULL if not given */
    int master_port;                              /* 0 for any free port */
    const char *rdzv_backend, *rdzv_endpoint, *rdzv_id;
    struct rdzv_conf rdzv_conf;
    const char *role, *job;
    struct restart_budget max_restarts;
    struct restart_policy restart;
    struct on_failure on_failure;
    int shutdown_timeout, stall;
    const char *deadline; /* NULL if not given */
    int deadline_margin;  /* seconds before the end of the Slurm job */
    struct status_at status;
    struct detach_options {
        size_t bound; /* bytes of output that are kept; 0 without --detach */
        int caller;   /* descriptor of the socket to ctrun --detach; 0 in other jobs */
    } detach;
    const char *events; /* path of a file; NULL if not given */
    const char *trace;  /* path of a file; NULL if not given */
    size_t trace_size;
    const char *log_dir; /* NULL if not given */
    struct stream_spec redirects, tee;
    const char *log_line_prefix_template, *local_ranks_filter;
    const char *duplicate_stdout_filters, *duplicate_stderr_filters; /* NULL if not given */
    const char *show; /* NULL to show the output of all ranks */
    const char *prefix;
    struct stdin_to stdin_to;
    enum numa_binding numa_binding;
    const char *bind, *gpus; /* NULL if not given */
    enum report_form report;
    struct exec_on exec_on;
    double monitor_interval;
    const char *start_method, *logs_specs, *print_completion;
    const char *event_log_handler;
    const char *store_secret_file; /* NULL if not given */
    int encrypt;
    struct networks store_allow;
    size_t store_memory, store_request;
    int store_clients;
    struct signals signals;
    char **program; /* the program and its arguments, NULL at the end; points into argv */
    struct setting settings[OPTIONS];
    struct surroundings surroundings;
    /* the job file; its sections [env] and [collectives] are for the workers */
    struct jobfile file;
};

enum outcome {
    OPTIONS_RUN,
    OPTIONS_SHOW_HELP,
    OPTIONS_SHOW_BRIEF_HELP,
    OPTIONS_SHOW_VERSION,
    OPTIONS_SHOW_COMPLETION,
    OPTIONS_WRONG /* wrong usage; ctrun exits with code 2 */
};

/* Reads all sources and parses the values.  If the outcome is OPTIONS_WRONG, `error` contains the
 * error message.  The caller must call options_free() after every outcome. */
enum outcome options_read(struct options *options, char **argv, char *error, size_t size);
void options_free(struct options *options);

/* Writes the source of the value to `text`: "--nproc-per-node", "PET_NPROC_PER_NODE", "job.ini:3"
 * or "default". */
void setting_source(const struct options *options, enum option option, char *text, size_t size);
/* Writes the setting to `text` as the user gave it: "job.ini:4: tee = 3", "--tee=3" or
 * "PET_TEE=3". */
void setting_words(const struct options *options, enum option option, char *text, size_t size);

/* Reads argv as argparse does, into options->settings and options->program.  Only options.c calls
 * this function. */
enum outcome cmdline_read(struct options *options, char **argv, char *error, size_t size);

#endif
