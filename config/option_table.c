/* SPDX-License-Identifier: Apache-2.0 */
/* option_table.c - the table of ctrun's options, with one row for each option.
 *
 * To add an option, add a row here, its name to enum option and a field to struct options.
 * Parsing, job.ini, PET_ variables, --help and --explain need no further change. */
#include "config/option_table.h"

#include <stddef.h>
#include <string.h>

#include "config/options.h"
#include "config/values/parse_deadline.h"
#include "config/values/parse_duration.h"
#include "config/values/suggest.h"

#define FIELD(name) offsetof(struct options, name)

/* clang-format off */
static const struct option_row rows[OPTIONS] = {
    [OPTION_NPROC_PER_NODE] = {
        .name = "nproc-per-node", .value = "N|auto|cpu|gpu", .fallback = "1", .variables = { "PET_NPROC_PER_NODE" },
        .parse = parse_nproc, .field = FIELD(nproc), .heading = "The job",
        .help = "workers to start: a number, one per CPU or GPU, or auto; 0: only serve the rendezvous" },
    [OPTION_NNODES] = {
        .name = "nnodes", .value = "N|MIN:MAX", .fallback = "1:1", .variables = { "PET_NNODES" },
        .parse = parse_nnodes, .field = FIELD(nnodes),
        .help = "nodes of the job; start ctrun once on each" },
    [OPTION_NODE_RANK] = {
        .name = "node-rank", .value = "N", .fallback = "0", .variables = { "PET_NODE_RANK" },
        .parse = parse_node_rank, .field = FIELD(node_rank),
        .help = "rank of this node in a fixed job; node 0 serves the store" },
    [OPTION_STANDALONE] = {
        .name = "standalone", .fallback = "0", .variables = { "PET_STANDALONE" },
        .parse = parse_switch, .field = FIELD(standalone),
        .help = "one node and any free port, whatever other options say" },
    [OPTION_HOSTS] = {
        .name = "hosts", .value = "HOST[:N],...", .variables = { "CT_HOSTS" },
        .parse = parse_hosts, .field = FIELD(hosts),
        .help = "start the job on these hosts by ssh, N workers on each: a:4,b:4 or node[01-16]:8" },
    [OPTION_HOSTFILE] = {
        .name = "hostfile", .value = "FILE", .variables = { "CT_HOSTFILE" },
        .parse = parse_file_name, .field = FIELD(hostfile),
        .help = "the same, from FILE: HOST, HOST:N or HOST slots=N, one a line" },
    [OPTION_SSH] = {
        .name = "ssh", .value = "COMMAND", .fallback = "ssh", .variables = { "CT_SSH" },
        .parse = parse_file_name, .field = FIELD(ssh),
        .help = "with --hosts: the command that runs another on a host, as 'ssh -p 2222'" },
    [OPTION_MASTER_ADDR] = {
        .name = "master-addr", .value = "HOST", .variables = { "PET_MASTER_ADDR" },
        .parse = parse_text, .field = FIELD(master_addr),
        .help = "address of the store in a fixed job (127.0.0.1)" },
    [OPTION_MASTER_PORT] = {
        .name = "master-port", .value = "PORT", .fallback = "0", .variables = { "PET_MASTER_PORT" },
        .parse = parse_port, .field = FIELD(master_port),
        .help = "port of the store; 0: any free one, or 29500 with several nodes" },
    [OPTION_LOCAL_ADDR] = {
        .name = "local-addr", .value = "HOST", .variables = { "PET_LOCAL_ADDR" },
        .parse = parse_text, .field = FIELD(local_addr),
        .help = "address at which other nodes reach this one" },
    [OPTION_IFACE] = {
        .name = "iface", .alias = "interface", .value = "NAME", .variables = { "CT_INTERFACE" },
        .parse = parse_text, .field = FIELD(iface),
        .help = "network interface, or its address, for the workers' data; without it the one by which they reach the store" },
    [OPTION_RDZV_BACKEND] = {
        .name = "rdzv-backend", .value = "static|c10d", .fallback = "static", .variables = { "PET_RDZV_BACKEND" },
        .parse = parse_text, .field = FIELD(rdzv_backend),
        .help = "how nodes join: static: a fixed job; c10d: an elastic one, nodes come and go" },
    [OPTION_RDZV_ENDPOINT] = {
        .name = "rdzv-endpoint", .value = "HOST[:PORT]", .fallback = "", .variables = { "PET_RDZV_ENDPOINT" },
        .parse = parse_text, .field = FIELD(rdzv_endpoint),
        .help = "where nodes join; with c10d the ctrun that can bind it serves the job (port 29400)" },
    [OPTION_RDZV_ID] = {
        .name = "rdzv-id", .value = "ID", .fallback = "none", .variables = { "PET_RDZV_ID" },
        .parse = parse_text, .field = FIELD(rdzv_id),
        .help = "name of the job, the same on all nodes; one node alone: a new UUID" },
    [OPTION_RDZV_CONF] = {
        .name = "rdzv-conf", .value = "K=V,...", .fallback = "", .variables = { "PET_RDZV_CONF" },
        .parse = parse_rdzv_conf, .field = FIELD(rdzv_conf),
        .help = "join_timeout, last_call_timeout, keep_alive_interval and others, as in torchrun" },
    [OPTION_ROLE] = {
        .name = "role", .value = "NAME", .fallback = "default", .variables = { "PET_ROLE" },
        .parse = parse_text, .field = FIELD(role),
        .help = "role of the workers (ROLE_NAME)" },
    [OPTION_NO_PYTHON] = {
        .name = "no-python", .fallback = "0", .variables = { "PET_NO_PYTHON" },
        .parse = parse_switch, .field = FIELD(no_python), .heading = "The program",
        .help = "execute the program itself, whatever it is" },
    [OPTION_MODULE] = {
        .name = "module", .letter = 'm', .fallback = "0", .variables = { "PET_MODULE" },
        .parse = parse_switch, .field = FIELD(module),
        .help = "the program is a Python module: python -u -m PROGRAM" },
    [OPTION_RUN_PATH] = {
        .name = "run-path", .fallback = "0", .variables = { "PET_RUN_PATH" },
        .parse = parse_switch, .field = FIELD(run_path),
        .help = "the program is a Python file, whatever its name: python -u PROGRAM" },
    [OPTION_LEGACY_LAUNCH] = {
        .name = "legacy-launch", .fallback = "0",
        .parse = parse_switch, .field = FIELD(legacy_launch),
        .help = "as python -m torch.distributed.launch: the first argument is --local-rank=N" },
    [OPTION_USE_ENV] = {
        .name = "use-env", .fallback = "0", .variables = { "PET_USE_ENV" },
        .parse = parse_switch, .field = FIELD(use_env),
        .help = "with --legacy-launch: do not add that argument" },
    [OPTION_MPI] = {
        .name = "mpi", .value = "auto|pmi|none", .fallback = "auto", .variables = { "CT_MPI" },
        .parse = parse_mpi, .field = FIELD(mpi),
        .help = "pmi: ctrun is the process manager of MPICH and Intel MPI; auto: if the program is linked with one of them" },
    [OPTION_MAX_RESTARTS] = {
        .name = "max-restarts", .value = "N[/TIME]", .fallback = "0", .variables = { "PET_MAX_RESTARTS" },
        .parse = parse_restart_budget, .field = FIELD(max_restarts), .heading = "Failures",
        .help = "how often all workers start again after a failure; 3/1h: at most 3 times an hour" },
    [OPTION_RESTART] = {
        .name = "restart", .value = "CAUSES", .fallback = "any", .variables = { "CT_RESTART" },
        .parse = parse_restart_policy, .field = FIELD(restart),
        .help = "failures after which they start again: any, on-signal[:NAME], on-exit[:CODE], never-on:CODE" },
    [OPTION_ON_FAILURE] = {
        .name = "on-failure", .value = "stop|continue[:MIN]", .fallback = "stop", .variables = { "CT_ON_FAILURE" },
        .parse = parse_on_failure, .field = FIELD(on_failure),
        .help = "stop: a failure ends the job; continue: the other ranks go on while at least MIN live" },
    [OPTION_SHUTDOWN_TIMEOUT] = {
        .name = "shutdown-timeout", .alias = "grace", .value = "SECONDS", .fallback = "30", .variables = { "PET_SHUTDOWN_TIMEOUT", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT" },
        .parse = parse_seconds, .field = FIELD(shutdown_timeout),
        .help = "how long workers that were told to stop have until SIGKILL" },
    [OPTION_DEADLINE] = {
        .name = "deadline", .value = "TIME", .variables = { "CT_DEADLINE" },
        .parse = parse_deadline, .field = FIELD(deadline),
        .help = "when all ranks are asked to stop: 90m from now, 06:30, @EPOCH; SIGTERM after the grace" },
    [OPTION_DEADLINE_MARGIN] = {
        .name = "deadline-margin", .value = "SECONDS", .fallback = "60", .variables = { "CT_DEADLINE_MARGIN" },
        .parse = parse_seconds, .field = FIELD(deadline_margin),
        .help = "without --deadline, under Slurm: ask that long before the job's end (by default at most half of what is left)" },
    [OPTION_SIGNALS_TO_HANDLE] = {
        .name = "signals-to-handle", .value = "LIST", .fallback = "SIGTERM,SIGINT,SIGHUP,SIGQUIT", .variables = { "PET_SIGNALS_TO_HANDLE" },
        .parse = parse_signals, .field = FIELD(signals),
        .help = "signals that ctrun forwards to the workers and that stop the job" },
    [OPTION_FAILURE_REPORT] = {
        .name = "failure-report", .value = "full|short", .fallback = "full", .variables = { "CT_FAILURE_REPORT" },
        .parse = parse_failure_report, .field = FIELD(short_report),
        .help = "full: torchrun's blocks, one for each worker; short: the root cause, its error and last words" },
    [OPTION_STALL] = {
        .name = "stall", .value = "TIME", .fallback = "60s", .variables = { "CT_STALL" },
        .parse = parse_duration, .field = FIELD(stall),
        .help = "report which ranks wait for which when a rank has waited that long, and stragglers, ranks that keep the others waiting all that time (10s, 5m; 0: never); ctctl status shows the waits at any time" },
    [OPTION_STATUS] = {
        .name = "status", .value = "[HOST:]PORT|unix:PATH", .variables = { "CT_STATUS" },
        .parse = parse_status, .field = FIELD(status),
        .help = "serve a page that shows what each rank does, live: on this host's loopback, or at HOST for clients that send its token" },
    [OPTION_EVENTS] = {
        .name = "events", .value = "FILE", .variables = { "CT_EVENTS" },
        .parse = parse_file_name, .field = FIELD(events),
        .help = "append what happens to FILE, one JSON object per line" },
    [OPTION_TRACE] = {
        .name = "trace", .value = "FILE", .variables = { "CT_TRACE" },
        .parse = parse_file_name, .field = FIELD(trace),
        .help = "write a timeline of all ranks for ui.perfetto.dev; several nodes: ctctl trace merge" },
    [OPTION_TRACE_SIZE] = {
        .name = "trace-size", .value = "SIZE", .fallback = "64M", .variables = { "CT_TRACE_SIZE" },
        .parse = parse_bytes, .field = FIELD(trace_size),
        .help = "memory for the trace on each node; when it is full the oldest events are overwritten" },
    [OPTION_LOG_DIR] = {
        .name = "log-dir", .value = "DIR", .variables = { "PET_LOG_DIR" },
        .parse = parse_text, .field = FIELD(log_dir), .heading = "Output",
        .help = "keep the workers' files in DIR/<job>_.../attempt_N/<local rank>/; /dev/null: none" },
    [OPTION_REDIRECTS] = {
        .name = "redirects", .letter = 'r', .value = "MAP", .fallback = "0", .variables = { "PET_REDIRECTS" },
        .parse = parse_streams, .field = FIELD(redirects),
        .help = "write to files only: 1 stdout, 2 stderr, 3 both, for all ranks or as 0:3,1:1" },
    [OPTION_TEE] = {
        .name = "tee", .letter = 't', .value = "MAP", .fallback = "0", .variables = { "PET_TEE" },
        .parse = parse_streams, .field = FIELD(tee),
        .help = "write to files, and here after a prefix; MAP as for --redirects" },
    [OPTION_LOG_LINE_PREFIX_TEMPLATE] = {
        .name = "log-line-prefix-template", .value = "TEXT", .variables = { "PET_LOG_LINE_PREFIX_TEMPLATE", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE" },
        .parse = parse_text, .field = FIELD(log_line_prefix_template),
        .help = "of --tee: the prefix, with ${role_name} ${local_rank} ${rank} ${hostname}" },
    [OPTION_LOCAL_RANKS_FILTER] = {
        .name = "local-ranks-filter", .value = "LIST", .variables = { "PET_LOCAL_RANKS_FILTER" },
        .parse = parse_rank_filter, .field = FIELD(local_ranks_filter),
        .help = "show the output of these local ranks only" },
    [OPTION_DUPLICATE_STDOUT_FILTERS] = {
        .name = "duplicate-stdout-filters", .value = "LIST", .variables = { "PET_DUPLICATE_STDOUT_FILTERS" },
        .parse = parse_text, .field = FIELD(duplicate_stdout_filters),
        .help = "copy lines of --tee that have one of these words to filtered_stdout.log" },
    [OPTION_DUPLICATE_STDERR_FILTERS] = {
        .name = "duplicate-stderr-filters", .value = "LIST", .variables = { "PET_DUPLICATE_STDERR_FILTERS" },
        .parse = parse_text, .field = FIELD(duplicate_stderr_filters),
        .help = "the same for stderr, in filtered_stderr.log" },
    [OPTION_SHOW] = {
        .name = "show", .value = "RANKS", .variables = { "CT_SHOW" },
        .parse = parse_ranks, .field = FIELD(show),
        .help = "show the output of these ranks only: 0,4-7,@last; files get that of all" },
    [OPTION_PREFIX] = {
        .name = "prefix", .value = "auto|none|TEXT", .fallback = "auto", .variables = { "CT_PREFIX" },
        .parse = parse_text, .field = FIELD(prefix),
        .help = "text before each line; auto: [rank] on a terminal, if there are several ranks" },
    [OPTION_NO_FOLD] = {
        .name = "no-fold", .fallback = "0", .variables = { "CT_NO_FOLD" },
        .parse = parse_switch, .field = FIELD(no_fold),
        .help = "do not merge equal lines of several ranks" },
    [OPTION_QUIET] = {
        .name = "quiet", .fallback = "0", .variables = { "CT_QUIET" },
        .parse = parse_switch, .field = FIELD(quiet),
        .help = "ctrun itself prints errors only" },
    [OPTION_STDIN] = {
        .name = "stdin", .value = "RANK|all|none", .fallback = "0", .variables = { "CT_STDIN" },
        .parse = parse_stdin, .field = FIELD(stdin_to),
        .help = "ranks that inherit ctrun's standard input" },
    [OPTION_NUMA_BINDING] = {
        .name = "numa-binding", .value = "node|socket|exclusive|core-complex",
        .parse = parse_numa_binding, .field = FIELD(numa_binding), .heading = "Placement",
        .help = "bind each worker to CPUs near its GPU, as torchrun does" },
    [OPTION_BIND] = {
        .name = "bind", .value = "gpu|numa|core|none|LIST", .variables = { "CT_BIND" },
        .parse = parse_bind, .field = FIELD(bind),
        .help = "bind workers to CPUs; LIST: sets by local rank, 0-3;4-7" },
    [OPTION_GPUS] = {
        .name = "gpus", .value = "LIST", .variables = { "CT_GPUS" },
        .parse = parse_gpus, .field = FIELD(gpus),
        .help = "GPUs of this node that the workers may use: 2,4,7, or their names" },
    [OPTION_VIRTUAL_LOCAL_RANK] = {
        .name = "virtual-local-rank", .fallback = "0", .variables = { "PET_VIRTUAL_LOCAL_RANK" },
        .parse = parse_switch, .field = FIELD(virtual_local_rank),
        .help = "each worker sees only its own GPU, as LOCAL_RANK 0" },
    [OPTION_REPORT] = {
        .name = "report", .value = "text|json", .bare = "text", .variables = { "CT_REPORT" },
        .parse = parse_report, .field = FIELD(report),
        .help = "print where each worker runs, and what connects their GPUs" },
    [OPTION_EXEC_ON] = {
        .name = "exec-on", .value = "RANKS:COMMAND", .variables = { "CT_EXEC_ON" },
        .parse = parse_exec_on, .field = FIELD(exec_on), .heading = "Looking closer",
        .help = "run these ranks under a command: 3:'gdb --args', '*:valgrind'; one rank has the terminal" },
    [OPTION_DRY_RUN] = {
        .name = "dry-run", .fallback = "0", .command_line_only = 1,
        .parse = parse_switch, .field = FIELD(dry_run),
        .help = "print each worker's command and environment, quoted for a shell; run nothing" },
    [OPTION_STORE_SECRET_FILE] = {
        .name = "store-secret-file", .value = "FILE", .variables = { "CT_STORE_SECRET_FILE" },
        .parse = parse_text, .field = FIELD(store_secret_file), .heading = "The store",
        .help = "file of the secret that other hosts need to use the store; chmod 600, the same on all nodes" },
    [OPTION_ENCRYPT] = {
        .name = "encrypt", .fallback = "0", .variables = { "CT_ENCRYPT" },
        .parse = parse_switch, .field = FIELD(encrypt),
        .help = "encrypt all that leaves a host, with the store's secret; the same on all nodes" },
    [OPTION_STORE_ALLOW] = {
        .name = "store-allow", .value = "any|NETWORKS", .variables = { "CT_STORE_ALLOW" },
        .parse = parse_networks, .field = FIELD(store_allow),
        .help = "networks whose clients need no secret (Python's agents on other nodes): 10.1.0.0/16,fd00::/8; any: all" },
    [OPTION_STORE_MEMORY] = {
        .name = "store-memory", .value = "SIZE", .fallback = "4G", .variables = { "CT_STORE_MEMORY" },
        .parse = parse_bytes, .field = FIELD(store_memory),
        .help = "most bytes that the store keeps for its clients" },
    [OPTION_STORE_REQUEST] = {
        .name = "store-request", .value = "SIZE", .fallback = "1G", .variables = { "CT_STORE_REQUEST" },
        .parse = parse_bytes, .field = FIELD(store_request),
        .help = "most bytes of one request to the store" },
    [OPTION_STORE_CLIENTS] = {
        .name = "store-clients", .value = "N", .fallback = "65536", .variables = { "CT_STORE_CLIENTS" },
        .parse = parse_count, .field = FIELD(store_clients),
        .help = "most connections to the store at a time" },
    [OPTION_MONITOR_INTERVAL] = {
        .name = "monitor-interval", .value = "SECONDS", .fallback = "0.1", .variables = { "PET_MONITOR_INTERVAL" },
        .parse = parse_interval, .field = FIELD(monitor_interval), .heading = "Known from torchrun",
        .help = "no effect: ctrun notices ends at once" },
    [OPTION_START_METHOD] = {
        .name = "start-method", .value = "spawn|fork|forkserver", .fallback = "spawn", .variables = { "PET_START_METHOD" }, .any_in_environment = 1,
        .parse = parse_start_method, .field = FIELD(start_method),
        .help = "no effect: each worker is a separate program" },
    [OPTION_EVENT_LOG_HANDLER] = {
        .name = "event-log-handler", .value = "null|console", .fallback = "null", .variables = { "PET_EVENT_LOG_HANDLER" },
        .parse = parse_event_handler, .field = FIELD(event_log_handler),
        .help = "no effect: use --events=FILE" },
    [OPTION_LOGS_SPECS] = {
        .name = "logs-specs", .value = "NAME", .fallback = "default",
        .parse = parse_logs_specs, .field = FIELD(logs_specs),
        .help = "only default; Python plugins are refused" },
    [OPTION_JOB] = {
        .name = "job", .value = "FILE", .variables = { "CT_JOB" }, .command_line_only = 1,
        .parse = parse_text, .field = FIELD(job), .heading = "Help",
        .help = "read options and variables from FILE (./job.ini if it is there)" },
    [OPTION_EXPLAIN] = {
        .name = "explain", .fallback = "0", .command_line_only = 1,
        .parse = parse_switch, .field = FIELD(explain),
        .help = "print each value and where it comes from; run nothing" },
    [OPTION_PRINT_COMPLETION] = {
        .name = "print-completion", .value = "bash|zsh|fish", .command_line_only = 1,
        .parse = parse_shell, .field = FIELD(print_completion),
        .help = "print a script by which the shell completes these options" },
    [OPTION_VERSION] = {
        .name = "version", .letter = 'V', .command_line_only = 1,
        .help = "print the version" },
    [OPTION_HELP] = {
        .name = "help", .letter = 'h', .command_line_only = 1,
        .help = "print this" },
};
/* clang-format on */

const struct option_row *option_row(int option)
{
    return &rows[option];
}

/* Returns 1 if `name` is the dashed spelling, or the dashed spelling with an underscore for every
 * dash. */
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

/* Names that options of ctrun have in mpirun and srun. */
static const struct {
    const char *name;
    enum option option;
} elsewhere[] = {
    { "n", OPTION_NPROC_PER_NODE },
    { "np", OPTION_NPROC_PER_NODE },
    { "nproc", OPTION_NPROC_PER_NODE },
    { "nprocs", OPTION_NPROC_PER_NODE },
    { "ntasks", OPTION_NPROC_PER_NODE },
    { "ntasks-per-node", OPTION_NPROC_PER_NODE },
    { "N", OPTION_NNODES },
    { "nodes", OPTION_NNODES },
};

enum option option_meant(const char *name)
{
    struct suggestion best = { NULL, 0 };
    enum option meant = OPTIONS;

    for (enum option i = 0; i < OPTIONS; i++)
        if (suggest(&best, name, rows[i].name)
            || (rows[i].alias && suggest(&best, name, rows[i].alias)))
            meant = i;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        if (!strcmp(name, elsewhere[i].name))
            return elsewhere[i].option;
        if (suggest(&best, name, elsewhere[i].name))
            meant = elsewhere[i].option;
    }
    return meant;
}
