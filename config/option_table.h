/* SPDX-License-Identifier: Apache-2.0 */
/* option_table.h - every option of ctrun, with its names, its value and its line of the help. */
#ifndef CONFIG_OPTION_TABLE_H
#define CONFIG_OPTION_TABLE_H

#include "config/option_row.h"

/* The options, in the order of --help and --explain. */
enum option {
    OPTION_NPROC_PER_NODE,
    OPTION_NNODES,
    OPTION_NODE_RANK,
    OPTION_STANDALONE,
    OPTION_HOSTS,
    OPTION_HOSTFILE,
    OPTION_SSH,
    OPTION_MASTER_ADDR,
    OPTION_MASTER_PORT,
    OPTION_LOCAL_ADDR,
    OPTION_IFACE,
    OPTION_RDZV_BACKEND,
    OPTION_RDZV_ENDPOINT,
    OPTION_RDZV_ID,
    OPTION_RDZV_CONF,
    OPTION_ROLE,
    OPTION_NO_PYTHON,
    OPTION_MODULE,
    OPTION_RUN_PATH,
    OPTION_LEGACY_LAUNCH,
    OPTION_USE_ENV,
    OPTION_MPI,
    OPTION_MAX_RESTARTS,
    OPTION_RESTART,
    OPTION_ON_FAILURE,
    OPTION_SHUTDOWN_TIMEOUT,
    OPTION_DEADLINE,
    OPTION_DEADLINE_MARGIN,
    OPTION_SIGNALS_TO_HANDLE,
    OPTION_FAILURE_REPORT,
    OPTION_STALL,
    OPTION_STATUS,
    OPTION_DETACH,
    OPTION_EVENTS,
    OPTION_TRACE,
    OPTION_TRACE_SIZE,
    OPTION_LOG_DIR,
    OPTION_REDIRECTS,
    OPTION_TEE,
    OPTION_LOG_LINE_PREFIX_TEMPLATE,
    OPTION_LOCAL_RANKS_FILTER,
    OPTION_DUPLICATE_STDOUT_FILTERS,
    OPTION_DUPLICATE_STDERR_FILTERS,
    OPTION_SHOW,
    OPTION_PREFIX,
    OPTION_NO_FOLD,
    OPTION_QUIET,
    OPTION_STDIN,
    OPTION_NUMA_BINDING,
    OPTION_BIND,
    OPTION_GPUS,
    OPTION_VIRTUAL_LOCAL_RANK,
    OPTION_REPORT,
    OPTION_EXEC_ON,
    OPTION_DRY_RUN,
    OPTION_STORE_SECRET_FILE,
    OPTION_ENCRYPT,
    OPTION_STORE_ALLOW,
    OPTION_STORE_MEMORY,
    OPTION_STORE_REQUEST,
    OPTION_STORE_CLIENTS,
    OPTION_MONITOR_INTERVAL,
    OPTION_START_METHOD,
    OPTION_EVENT_LOG_HANDLER,
    OPTION_LOGS_SPECS,
    OPTION_JOB,
    OPTION_EXPLAIN,
    OPTION_PRINT_COMPLETION,
    OPTION_VERSION,
    OPTION_HELP,
    OPTIONS
};

const struct option_row *option_row(int option);

/* Returns the option with this name, which must be spelled with dashes only or with underscores
 * only.  Returns OPTIONS if no row has the name. */
enum option option_named(const char *name);

/* Returns the option that the user may have meant by an unknown name: a misspelled name, or the
 * name in mpirun or srun.  Returns OPTIONS if no row is similar. */
enum option option_meant(const char *name);

#endif
