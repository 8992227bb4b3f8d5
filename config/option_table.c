/* SPDX-License-Identifier: Apache-2.0 */
/* option_table.c - every option of ctrun: one row each.
 *
 * A new option is a row here, its name in enum option and a field in struct
 * options; parsing, job.ini, PET_ variables, --help and --explain follow. */
#include "config/option_table.h"

#include <stddef.h>
#include <string.h>

#include "config/options.h"
#include "config/values/suggest.h"

#define FIELD(name) offsetof(struct options, name)

/* clang-format off */
static const struct option_row rows[OPTIONS] = {
    [OPTION_NPROC_PER_NODE] = {
        "nproc-per-node", NULL, 0, "N|auto|cpu|gpu", NULL, "1", { "PET_NPROC_PER_NODE" }, 0,
        parse_nproc, FIELD(nproc),
        "workers to start: a number, one per CPU or GPU, or auto; 0: only serve the rendezvous", "The job", 0 },
    [OPTION_NNODES] = {
        "nnodes", NULL, 0, "N|MIN:MAX", NULL, "1:1", { "PET_NNODES" }, 0,
        parse_nnodes, FIELD(nnodes),
        "nodes of the job; start ctrun once on each", NULL, 0 },
    [OPTION_NODE_RANK] = {
        "node-rank", NULL, 0, "N", NULL, "0", { "PET_NODE_RANK" }, 0,
        parse_node_rank, FIELD(node_rank),
        "rank of this node in a fixed job; node 0 serves the store", NULL, 0 },
    [OPTION_STANDALONE] = {
        "standalone", NULL, 0, NULL, NULL, "0", { "PET_STANDALONE" }, 0,
        parse_switch, FIELD(standalone),
        "one node and any free port, whatever other options say", NULL, 0 },
    [OPTION_HOSTS] = {
        "hosts", NULL, 0, "HOST[:N],...", NULL, NULL, { "CT_HOSTS" }, 0,
        parse_hosts, FIELD(hosts),
        "start the job on these hosts by ssh, N workers on each: a:4,b:4 or node[01-16]:8", NULL, 0 },
    [OPTION_HOSTFILE] = {
        "hostfile", NULL, 0, "FILE", NULL, NULL, { "CT_HOSTFILE" }, 0,
        parse_file_name, FIELD(hostfile),
        "the same, from FILE: HOST, HOST:N or HOST slots=N, one a line", NULL, 0 },
    [OPTION_SSH] = {
        "ssh", NULL, 0, "COMMAND", NULL, "ssh", { "CT_SSH" }, 0,
        parse_file_name, FIELD(ssh),
        "with --hosts: the command that runs another on a host, as 'ssh -p 2222'", NULL, 0 },
    [OPTION_MASTER_ADDR] = {
        "master-addr", NULL, 0, "HOST", NULL, NULL, { "PET_MASTER_ADDR" }, 0,
        parse_text, FIELD(master_addr),
        "address of the store in a fixed job (127.0.0.1)", NULL, 0 },
    [OPTION_MASTER_PORT] = {
        "master-port", NULL, 0, "PORT", NULL, "0", { "PET_MASTER_PORT" }, 0,
        parse_port, FIELD(master_port),
        "port of the store; 0: any free one, or 29500 with several nodes", NULL, 0 },
    [OPTION_LOCAL_ADDR] = {
        "local-addr", NULL, 0, "HOST", NULL, NULL, { "PET_LOCAL_ADDR" }, 0,
        parse_text, FIELD(local_addr),
        "address at which other nodes reach this one", NULL, 0 },
    [OPTION_IFACE] = {
        "iface", "interface", 0, "NAME", NULL, NULL, { "CT_INTERFACE" }, 0,
        parse_text, FIELD(iface),
        "network interface, or its address, for the workers' data; without it the one by which they reach the store", NULL, 0 },
    [OPTION_RDZV_BACKEND] = {
        "rdzv-backend", NULL, 0, "static|c10d", NULL, "static", { "PET_RDZV_BACKEND" }, 0,
        parse_text, FIELD(rdzv_backend),
        "how nodes join: static: a fixed job; c10d: an elastic one, nodes come and go", NULL, 0 },
    [OPTION_RDZV_ENDPOINT] = {
        "rdzv-endpoint", NULL, 0, "HOST[:PORT]", NULL, "", { "PET_RDZV_ENDPOINT" }, 0,
        parse_text, FIELD(rdzv_endpoint),
        "where nodes join; with c10d the ctrun that can bind it serves the job (port 29400)", NULL, 0 },
    [OPTION_RDZV_ID] = {
        "rdzv-id", NULL, 0, "ID", NULL, "none", { "PET_RDZV_ID" }, 0,
        parse_text, FIELD(rdzv_id),
        "name of the job, the same on all nodes; one node alone: a new UUID", NULL, 0 },
    [OPTION_RDZV_CONF] = {
        "rdzv-conf", NULL, 0, "K=V,...", NULL, "", { "PET_RDZV_CONF" }, 0,
        parse_rdzv_conf, FIELD(rdzv_conf),
        "join_timeout, last_call_timeout, keep_alive_interval and others, as in torchrun", NULL, 0 },
    [OPTION_ROLE] = {
        "role", NULL, 0, "NAME", NULL, "default", { "PET_ROLE" }, 0,
        parse_text, FIELD(role),
        "role of the workers (ROLE_NAME)", NULL, 0 },
    [OPTION_NO_PYTHON] = {
        "no-python", NULL, 0, NULL, NULL, "0", { "PET_NO_PYTHON" }, 0,
        parse_switch, FIELD(no_python),
        "execute the program itself, whatever it is", "The program", 0 },
    [OPTION_MODULE] = {
        "module", NULL, 'm', NULL, NULL, "0", { "PET_MODULE" }, 0,
        parse_switch, FIELD(module),
        "the program is a Python module: python -u -m PROGRAM", NULL, 0 },
    [OPTION_RUN_PATH] = {
        "run-path", NULL, 0, NULL, NULL, "0", { "PET_RUN_PATH" }, 0,
        parse_switch, FIELD(run_path),
        "the program is a Python file, whatever its name: python -u PROGRAM", NULL, 0 },
    [OPTION_LEGACY_LAUNCH] = {
        "legacy-launch", NULL, 0, NULL, NULL, "0", { NULL }, 0,
        parse_switch, FIELD(legacy_launch),
        "as python -m torch.distributed.launch: the first argument is --local-rank=N", NULL, 0 },
    [OPTION_USE_ENV] = {
        "use-env", NULL, 0, NULL, NULL, "0", { "PET_USE_ENV" }, 0,
        parse_switch, FIELD(use_env),
        "with --legacy-launch: do not add that argument", NULL, 0 },
    [OPTION_MPI] = {
        "mpi", NULL, 0, "auto|pmi|none", NULL, "auto", { "CT_MPI" }, 0,
        parse_mpi, FIELD(mpi),
        "pmi: ctrun is the process manager of MPICH and Intel MPI; auto: if the program is linked with one of them", NULL, 0 },
    [OPTION_MAX_RESTARTS] = {
        "max-restarts", NULL, 0, "N[/TIME]", NULL, "0", { "PET_MAX_RESTARTS" }, 0,
        parse_restart_budget, FIELD(max_restarts),
        "how often all workers start again after a failure; 3/1h: at most 3 times an hour", "Failures", 0 },
    [OPTION_RESTART] = {
        "restart", NULL, 0, "CAUSES", NULL, "any", { "CT_RESTART" }, 0,
        parse_restart_policy, FIELD(restart),
        "failures after which they start again: any, on-signal[:NAME], on-exit[:CODE], never-on:CODE", NULL, 0 },
    [OPTION_ON_FAILURE] = {
        "on-failure", NULL, 0, "stop|continue[:MIN]", NULL, "stop", { "CT_ON_FAILURE" }, 0,
        parse_on_failure, FIELD(on_failure),
        "stop: a failure ends the job; continue: the other ranks go on while at least MIN live", NULL, 0 },
    [OPTION_SHUTDOWN_TIMEOUT] = {
        "shutdown-timeout", "grace", 0, "SECONDS", NULL, "30", { "PET_SHUTDOWN_TIMEOUT", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT" }, 0,
        parse_seconds, FIELD(shutdown_timeout),
        "how long workers that were told to stop have until SIGKILL", NULL, 0 },
    [OPTION_DEADLINE] = {
        "deadline", NULL, 0, "TIME", NULL, NULL, { "CT_DEADLINE" }, 0,
        parse_deadline, FIELD(deadline),
        "when all ranks are asked to stop: 90m from now, 06:30, @EPOCH; SIGTERM after the grace", NULL, 0 },
    [OPTION_DEADLINE_MARGIN] = {
        "deadline-margin", NULL, 0, "SECONDS", NULL, "60", { "CT_DEADLINE_MARGIN" }, 0,
        parse_seconds, FIELD(deadline_margin),
        "without --deadline, under Slurm: ask that long before the job's end (by default at most half of what is left)", NULL, 0 },
    [OPTION_SIGNALS_TO_HANDLE] = {
        "signals-to-handle", NULL, 0, "LIST", NULL, "SIGTERM,SIGINT,SIGHUP,SIGQUIT", { "PET_SIGNALS_TO_HANDLE" }, 0,
        parse_signals, FIELD(signals),
        "signals that ctrun forwards to the workers and that stop the job", NULL, 0 },
    [OPTION_FAILURE_REPORT] = {
        "failure-report", NULL, 0, "full|short", NULL, "full", { "CT_FAILURE_REPORT" }, 0,
        parse_failure_report, FIELD(short_report),
        "full: torchrun's blocks, one for each worker; short: the root cause, its error and last words", NULL, 0 },
    [OPTION_STALL] = {
        "stall", NULL, 0, "TIME", NULL, "60s", { "CT_STALL" }, 0,
        parse_duration, FIELD(stall),
        "report which ranks wait for which when a rank has waited that long, and stragglers, ranks that keep the others waiting all that time (10s, 5m; 0: never); ctctl status shows the waits at any time", NULL, 0 },
    [OPTION_STATUS] = {
        "status", NULL, 0, "[HOST:]PORT|unix:PATH", NULL, NULL, { "CT_STATUS" }, 0,
        parse_status, FIELD(status),
        "serve a page that shows what each rank does, live: on this host's loopback, or at HOST for clients that send its token", NULL, 0 },
    [OPTION_EVENTS] = {
        "events", NULL, 0, "FILE", NULL, NULL, { "CT_EVENTS" }, 0,
        parse_file_name, FIELD(events),
        "append what happens to FILE, one JSON object per line", NULL, 0 },
    [OPTION_TRACE] = {
        "trace", NULL, 0, "FILE", NULL, NULL, { "CT_TRACE" }, 0,
        parse_file_name, FIELD(trace),
        "write a timeline of all ranks for ui.perfetto.dev; several nodes: ctctl trace merge", NULL, 0 },
    [OPTION_TRACE_SIZE] = {
        "trace-size", NULL, 0, "SIZE", NULL, "64M", { "CT_TRACE_SIZE" }, 0,
        parse_bytes, FIELD(trace_size),
        "memory for the trace on each node; when it is full the oldest events are overwritten", NULL, 0 },
    [OPTION_LOG_DIR] = {
        "log-dir", NULL, 0, "DIR", NULL, NULL, { "PET_LOG_DIR" }, 0,
        parse_text, FIELD(log_dir),
        "keep the workers' files in DIR/<job>_.../attempt_N/<local rank>/; /dev/null: none", "Output", 0 },
    [OPTION_REDIRECTS] = {
        "redirects", NULL, 'r', "MAP", NULL, "0", { "PET_REDIRECTS" }, 0,
        parse_streams, FIELD(redirects),
        "write to files only: 1 stdout, 2 stderr, 3 both, for all ranks or as 0:3,1:1", NULL, 0 },
    [OPTION_TEE] = {
        "tee", NULL, 't', "MAP", NULL, "0", { "PET_TEE" }, 0,
        parse_streams, FIELD(tee),
        "write to files, and here after a prefix; MAP as for --redirects", NULL, 0 },
    [OPTION_LOG_LINE_PREFIX_TEMPLATE] = {
        "log-line-prefix-template", NULL, 0, "TEXT", NULL, NULL, { "PET_LOG_LINE_PREFIX_TEMPLATE", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE" }, 0,
        parse_text, FIELD(log_line_prefix_template),
        "of --tee: the prefix, with ${role_name} ${local_rank} ${rank} ${hostname}", NULL, 0 },
    [OPTION_LOCAL_RANKS_FILTER] = {
        "local-ranks-filter", NULL, 0, "LIST", NULL, NULL, { "PET_LOCAL_RANKS_FILTER" }, 0,
        parse_rank_filter, FIELD(local_ranks_filter),
        "show the output of these local ranks only", NULL, 0 },
    [OPTION_DUPLICATE_STDOUT_FILTERS] = {
        "duplicate-stdout-filters", NULL, 0, "LIST", NULL, NULL, { "PET_DUPLICATE_STDOUT_FILTERS" }, 0,
        parse_text, FIELD(duplicate_stdout_filters),
        "copy lines of --tee that have one of these words to filtered_stdout.log", NULL, 0 },
    [OPTION_DUPLICATE_STDERR_FILTERS] = {
        "duplicate-stderr-filters", NULL, 0, "LIST", NULL, NULL, { "PET_DUPLICATE_STDERR_FILTERS" }, 0,
        parse_text, FIELD(duplicate_stderr_filters),
        "the same for stderr, in filtered_stderr.log", NULL, 0 },
    [OPTION_SHOW] = {
        "show", NULL, 0, "RANKS", NULL, NULL, { "CT_SHOW" }, 0,
        parse_ranks, FIELD(show),
        "show the output of these ranks only: 0,4-7,@last; files get that of all", NULL, 0 },
    [OPTION_PREFIX] = {
        "prefix", NULL, 0, "auto|none|TEXT", NULL, "auto", { "CT_PREFIX" }, 0,
        parse_text, FIELD(prefix),
        "text before each line; auto: [rank] on a terminal, if there are several ranks", NULL, 0 },
    [OPTION_NO_FOLD] = {
        "no-fold", NULL, 0, NULL, NULL, "0", { "CT_NO_FOLD" }, 0,
        parse_switch, FIELD(no_fold),
        "do not merge equal lines of several ranks", NULL, 0 },
    [OPTION_QUIET] = {
        "quiet", NULL, 0, NULL, NULL, "0", { "CT_QUIET" }, 0,
        parse_switch, FIELD(quiet),
        "ctrun itself prints errors only", NULL, 0 },
    [OPTION_STDIN] = {
        "stdin", NULL, 0, "RANK|all|none", NULL, "0", { "CT_STDIN" }, 0,
        parse_stdin, FIELD(stdin_to),
        "ranks that inherit ctrun's standard input", NULL, 0 },
    [OPTION_NUMA_BINDING] = {
        "numa-binding", NULL, 0, "node|socket|exclusive|core-complex", NULL, NULL, { NULL }, 0,
        parse_numa_binding, FIELD(numa_binding),
        "bind each worker to CPUs near its GPU, as torchrun does", "Placement", 0 },
    [OPTION_BIND] = {
        "bind", NULL, 0, "gpu|numa|core|none|LIST", NULL, NULL, { "CT_BIND" }, 0,
        parse_bind, FIELD(bind),
        "bind workers to CPUs; LIST: sets by local rank, 0-3;4-7", NULL, 0 },
    [OPTION_GPUS] = {
        "gpus", NULL, 0, "LIST", NULL, NULL, { "CT_GPUS" }, 0,
        parse_gpus, FIELD(gpus),
        "GPUs of this node that the workers may use: 2,4,7, or their names", NULL, 0 },
    [OPTION_VIRTUAL_LOCAL_RANK] = {
        "virtual-local-rank", NULL, 0, NULL, NULL, "0", { "PET_VIRTUAL_LOCAL_RANK" }, 0,
        parse_switch, FIELD(virtual_local_rank),
        "each worker sees only its own GPU, as LOCAL_RANK 0", NULL, 0 },
    [OPTION_REPORT] = {
        "report", NULL, 0, "text|json", "text", NULL, { "CT_REPORT" }, 0,
        parse_report, FIELD(report),
        "print where each worker runs, and what connects their GPUs", NULL, 0 },
    [OPTION_EXEC_ON] = {
        "exec-on", NULL, 0, "RANKS:COMMAND", NULL, NULL, { "CT_EXEC_ON" }, 0,
        parse_exec_on, FIELD(exec_on),
        "run these ranks under a command: 3:'gdb --args', '*:valgrind'; one rank has the terminal", "Looking closer", 0 },
    [OPTION_DRY_RUN] = {
        "dry-run", NULL, 0, NULL, NULL, "0", { NULL }, 1,
        parse_switch, FIELD(dry_run),
        "print each worker's command and environment, quoted for a shell; run nothing", NULL, 0 },
    [OPTION_STORE_SECRET_FILE] = {
        "store-secret-file", NULL, 0, "FILE", NULL, NULL, { "CT_STORE_SECRET_FILE" }, 0,
        parse_text, FIELD(store_secret_file),
        "file of the secret that other hosts need to use the store; chmod 600, the same on all nodes", "The store", 0 },
    [OPTION_ENCRYPT] = {
        "encrypt", NULL, 0, NULL, NULL, "0", { "CT_ENCRYPT" }, 0,
        parse_switch, FIELD(encrypt),
        "encrypt all that leaves a host, with the store's secret; the same on all nodes", NULL, 0 },
    [OPTION_STORE_ALLOW] = {
        "store-allow", NULL, 0, "any|NETWORKS", NULL, NULL, { "CT_STORE_ALLOW" }, 0,
        parse_networks, FIELD(store_allow),
        "networks whose clients need no secret (Python's agents on other nodes): 10.1.0.0/16,fd00::/8; any: all", NULL, 0 },
    [OPTION_STORE_MEMORY] = {
        "store-memory", NULL, 0, "SIZE", NULL, "4G", { "CT_STORE_MEMORY" }, 0,
        parse_bytes, FIELD(store_memory),
        "most bytes that the store keeps for its clients", NULL, 0 },
    [OPTION_STORE_REQUEST] = {
        "store-request", NULL, 0, "SIZE", NULL, "1G", { "CT_STORE_REQUEST" }, 0,
        parse_bytes, FIELD(store_request),
        "most bytes of one request to the store", NULL, 0 },
    [OPTION_STORE_CLIENTS] = {
        "store-clients", NULL, 0, "N", NULL, "65536", { "CT_STORE_CLIENTS" }, 0,
        parse_count, FIELD(store_clients),
        "most connections to the store at a time", NULL, 0 },
    [OPTION_MONITOR_INTERVAL] = {
        "monitor-interval", NULL, 0, "SECONDS", NULL, "0.1", { "PET_MONITOR_INTERVAL" }, 0,
        parse_interval, FIELD(monitor_interval),
        "no effect: ctrun notices ends at once", "Known from torchrun", 0 },
    [OPTION_START_METHOD] = {
        "start-method", NULL, 0, "spawn|fork|forkserver", NULL, "spawn", { "PET_START_METHOD" }, 0,
        parse_start_method, FIELD(start_method),
        "no effect: workers are programs of their own", NULL, 1 },
    [OPTION_EVENT_LOG_HANDLER] = {
        "event-log-handler", NULL, 0, "null|console", NULL, "null", { "PET_EVENT_LOG_HANDLER" }, 0,
        parse_event_handler, FIELD(event_log_handler),
        "no effect: use --events=FILE", NULL, 0 },
    [OPTION_LOGS_SPECS] = {
        "logs-specs", NULL, 0, "NAME", NULL, "default", { NULL }, 0,
        parse_logs_specs, FIELD(logs_specs),
        "only default; Python plugins are refused", NULL, 0 },
    [OPTION_JOB] = {
        "job", NULL, 0, "FILE", NULL, NULL, { "CT_JOB" }, 1,
        parse_text, FIELD(job),
        "read options and variables from FILE (./job.ini if it is there)", "Help", 0 },
    [OPTION_EXPLAIN] = {
        "explain", NULL, 0, NULL, NULL, "0", { NULL }, 1,
        parse_switch, FIELD(explain),
        "print each value and where it comes from; run nothing", NULL, 0 },
    [OPTION_PRINT_COMPLETION] = {
        "print-completion", NULL, 0, "bash|zsh|fish", NULL, NULL, { NULL }, 1,
        parse_shell, FIELD(print_completion),
        "print a script by which the shell completes these options", NULL, 0 },
    [OPTION_VERSION] = {
        "version", NULL, 'V', NULL, NULL, NULL, { NULL }, 1,
        NULL, 0,
        "print the version", NULL, 0 },
    [OPTION_HELP] = {
        "help", NULL, 'h', NULL, NULL, NULL, { NULL }, 1,
        NULL, 0,
        "print this", NULL, 0 },
};
/* clang-format on */

const struct option_row *option_row(int option)
{
    return &rows[option];
}

/* 1: name is the dashed spelling, or the same with an underscore for every dash. */
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

/* Their names in mpirun and srun. */
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
