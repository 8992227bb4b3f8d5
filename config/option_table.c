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
        .is_common = 1,
        .help = "Start N workers on each node. auto, cpu and gpu start one per GPU or CPU. 0 starts none: this "
                "ctrun only hosts the rendezvous." },
    [OPTION_NNODES] = {
        .name = "nnodes", .value = "N|MIN:MAX", .fallback = "1:1", .variables = { "PET_NNODES" },
        .parse = parse_nnodes, .field = FIELD(nnodes),
        .is_common = 1,
        .help = "Run the job on N nodes, or on MIN to MAX. Start ctrun once on each node." },
    [OPTION_NODE_RANK] = {
        .name = "node-rank", .value = "N", .fallback = "0", .variables = { "PET_NODE_RANK" },
        .parse = parse_node_rank, .field = FIELD(node_rank),
        .help = "The rank of this node in a fixed job. Node 0 hosts the store." },
    [OPTION_STANDALONE] = {
        .name = "standalone", .fallback = "0", .variables = { "PET_STANDALONE" },
        .parse = parse_switch, .field = FIELD(standalone),
        .help = "Run on this node alone, on any free port. This overrides the other options of the rendezvous." },
    [OPTION_HOSTS] = {
        .name = "hosts", .value = "HOST[:N],...", .variables = { "CT_HOSTS" },
        .parse = parse_hosts, .field = FIELD(hosts),
        .is_common = 1,
        .help = "Start the job on these hosts by ssh. a:4,b:4 starts 4 workers on each of two hosts; "
                "node[01-16]:8 names 16 hosts." },
    [OPTION_HOSTFILE] = {
        .name = "hostfile", .value = "FILE", .variables = { "CT_HOSTFILE" },
        .parse = parse_file_name, .field = FIELD(hostfile),
        .help = "Read the hosts from FILE. Each line is HOST, HOST:N, HOST N or HOST slots=N." },
    [OPTION_SSH] = {
        .name = "ssh", .value = "COMMAND", .fallback = "ssh", .variables = { "CT_SSH" },
        .parse = parse_file_name, .field = FIELD(ssh),
        .help = "The command that --hosts uses in place of ssh, such as 'ssh -p 2222'." },
    [OPTION_MASTER_ADDR] = {
        .name = "master-addr", .value = "HOST", .variables = { "PET_MASTER_ADDR" },
        .parse = parse_text, .field = FIELD(master_addr),
        .help = "The address of the store in a fixed job. Without this option it is 127.0.0.1." },
    [OPTION_MASTER_PORT] = {
        .name = "master-port", .value = "PORT", .fallback = "0", .variables = { "PET_MASTER_PORT" },
        .parse = parse_port, .field = FIELD(master_port),
        .help = "The port of the store in a fixed job. 0 takes any free port, or 29500 if the job has several "
                "nodes." },
    [OPTION_LOCAL_ADDR] = {
        .name = "local-addr", .value = "HOST", .variables = { "PET_LOCAL_ADDR" },
        .parse = parse_text, .field = FIELD(local_addr),
        .help = "The address at which other nodes reach this one." },
    [OPTION_IFACE] = {
        .name = "iface", .alias = "interface", .value = "NAME", .variables = { "CT_INTERFACE" },
        .parse = parse_text, .field = FIELD(iface),
        .help = "The network interface for the workers' data, by name or address. Without this option it is the "
                "interface that leads to the store." },
    [OPTION_RDZV_BACKEND] = {
        .name = "rdzv-backend", .value = "static|c10d", .fallback = "static", .variables = { "PET_RDZV_BACKEND" },
        .parse = parse_text, .field = FIELD(rdzv_backend),
        .help = "How nodes join the job. static starts a fixed job. c10d starts an elastic one: nodes may join "
                "and leave." },
    [OPTION_RDZV_ENDPOINT] = {
        .name = "rdzv-endpoint", .value = "HOST[:PORT]", .fallback = "", .variables = { "PET_RDZV_ENDPOINT" },
        .parse = parse_text, .field = FIELD(rdzv_endpoint),
        .help = "The address at which nodes join. With c10d, the ctrun that can bind it hosts the rendezvous; "
                "its port is 29400 if none is given." },
    [OPTION_RDZV_ID] = {
        .name = "rdzv-id", .value = "ID", .fallback = "none", .variables = { "PET_RDZV_ID" },
        .parse = parse_text, .field = FIELD(rdzv_id),
        .help = "The name of the job, the same on all nodes. ctctl knows the job by it. On one node the workers get a new UUID instead." },
    [OPTION_RDZV_CONF] = {
        .name = "rdzv-conf", .value = "K=V,...", .fallback = "", .variables = { "PET_RDZV_CONF" },
        .parse = parse_rdzv_conf, .field = FIELD(rdzv_conf),
        .help = "Settings of the rendezvous, as in torchrun: join_timeout, last_call_timeout, keep_alive_interval "
                "and others." },
    [OPTION_ROLE] = {
        .name = "role", .value = "NAME", .fallback = "default", .variables = { "PET_ROLE" },
        .parse = parse_text, .field = FIELD(role),
        .help = "The role of the workers. They get it as ROLE_NAME." },
    [OPTION_NO_PYTHON] = {
        .name = "no-python", .fallback = "0", .variables = { "PET_NO_PYTHON" },
        .parse = parse_switch, .field = FIELD(no_python), .heading = "The program",
        .help = "Execute the program directly, even a Python file." },
    [OPTION_MODULE] = {
        .name = "module", .letter = 'm', .fallback = "0", .variables = { "PET_MODULE" },
        .parse = parse_switch, .field = FIELD(module),
        .is_common = 1,
        .help = "Run a Python module: python -u -m PROGRAM." },
    [OPTION_RUN_PATH] = {
        .name = "run-path", .fallback = "0", .variables = { "PET_RUN_PATH" },
        .parse = parse_switch, .field = FIELD(run_path),
        .help = "Run a Python file, whatever its name: python -u PROGRAM." },
    [OPTION_LEGACY_LAUNCH] = {
        .name = "legacy-launch", .fallback = "0",
        .parse = parse_switch, .field = FIELD(legacy_launch),
        .help = "Start workers as python -m torch.distributed.launch does. Their first argument is "
                "--local-rank=N." },
    [OPTION_USE_ENV] = {
        .name = "use-env", .fallback = "0", .variables = { "PET_USE_ENV" },
        .parse = parse_switch, .field = FIELD(use_env),
        .help = "With --legacy-launch, leave out the argument --local-rank=N." },
    [OPTION_MPI] = {
        .name = "mpi", .value = "auto|pmi|none", .fallback = "auto", .variables = { "CT_MPI" },
        .parse = parse_mpi, .field = FIELD(mpi),
        .help = "Whether ctrun is the process manager of MPICH and Intel MPI. pmi: it is. auto: it is if the "
                "program is linked with one of them." },
    [OPTION_MAX_RESTARTS] = {
        .name = "max-restarts", .value = "N[/TIME]", .fallback = "0", .variables = { "PET_MAX_RESTARTS" },
        .parse = parse_restart_budget, .field = FIELD(max_restarts), .heading = "Failures",
        .is_common = 1,
        .help = "Restart all workers N times at most. A restart follows a failure. 3/1h allows 3 restarts an "
                "hour." },
    [OPTION_RESTART] = {
        .name = "restart", .value = "CAUSES", .fallback = "any", .variables = { "CT_RESTART" },
        .parse = parse_restart_policy, .field = FIELD(restart),
        .help = "Restart after these failures only. CAUSES is a list of any, on-signal[:NAME], on-exit[:CODE] and "
                "never-on:CODE." },
    [OPTION_ON_FAILURE] = {
        .name = "on-failure", .value = "stop|continue[:MIN]", .fallback = "stop", .variables = { "CT_ON_FAILURE" },
        .parse = parse_on_failure, .field = FIELD(on_failure),
        .help = "What the failure of a rank ends. stop ends the job. continue keeps the other ranks running while "
                "at least MIN ranks live." },
    [OPTION_SHUTDOWN_TIMEOUT] = {
        .name = "shutdown-timeout", .alias = "grace", .value = "SECONDS", .fallback = "30", .variables = { "PET_SHUTDOWN_TIMEOUT", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT" },
        .parse = parse_seconds, .field = FIELD(shutdown_timeout),
        .help = "The time that workers have to end after they were told to stop. ctrun then sends SIGKILL." },
    [OPTION_DEADLINE] = {
        .name = "deadline", .value = "TIME", .variables = { "CT_DEADLINE" },
        .parse = parse_deadline, .field = FIELD(deadline),
        .help = "Ask all ranks to stop at TIME: 90m from now, 06:30 or @EPOCH. ctrun sends SIGTERM "
                "after the time of --shutdown-timeout." },
    [OPTION_DEADLINE_MARGIN] = {
        .name = "deadline-margin", .value = "SECONDS", .fallback = "60", .variables = { "CT_DEADLINE_MARGIN" },
        .parse = parse_seconds, .field = FIELD(deadline_margin),
        .help = "Without --deadline, ask all ranks to stop this long before the end of the Slurm job. The default "
                "is at most half of the time that is left." },
    [OPTION_SIGNALS_TO_HANDLE] = {
        .name = "signals-to-handle", .value = "LIST", .fallback = "SIGTERM,SIGINT,SIGHUP,SIGQUIT", .variables = { "PET_SIGNALS_TO_HANDLE" },
        .parse = parse_signals, .field = FIELD(signals),
        .help = "Signals that stop the job. ctrun forwards them to the workers." },
    [OPTION_FAILURE_REPORT] = {
        .name = "failure-report", .value = "full|short", .fallback = "full", .variables = { "CT_FAILURE_REPORT" },
        .parse = parse_failure_report, .field = FIELD(short_report),
        .is_common = 1,
        .help = "How ctrun reports a failure. full is torchrun's report with a block for each worker. short is "
                "the root cause, its error and its last output." },
    [OPTION_STALL] = {
        .name = "stall", .value = "TIME", .fallback = "60s", .variables = { "CT_STALL" },
        .parse = parse_duration, .field = FIELD(stall),
        .help = "Report a rank that has waited this long (10s, 5m). The report says which ranks wait for which, "
                "and which stragglers keep others waiting. 0 never reports. ctctl status shows the waits at any "
                "time." },
    [OPTION_STATUS] = {
        .name = "status", .value = "[HOST:]PORT|unix:PATH", .variables = { "CT_STATUS" },
        .parse = parse_status, .field = FIELD(status),
        .is_common = 1,
        .help = "Serve a live page of what each rank does. PORT is on this host's loopback. At HOST a client must "
                "send the page's token." },
    [OPTION_DETACH] = {
        .name = "detach", .value = "SIZE", .bare = "64M", .command_line_only = 1,
        .parse = parse_bytes, .field = FIELD(detach.bound),
        .is_common = 1,
        .help = "Run the job in the background. ctrun prints the pid of the job's ctrun. The job outlives the terminal. "
                "The last SIZE bytes of output are kept, 64M without SIZE: see ctctl attach, logs, wait and kill." },
    [OPTION_EVENTS] = {
        .name = "events", .value = "FILE", .variables = { "CT_EVENTS" },
        .parse = parse_file_name, .field = FIELD(events),
        .help = "Append each event to FILE as a line of JSON." },
    [OPTION_TRACE] = {
        .name = "trace", .value = "FILE", .variables = { "CT_TRACE" },
        .parse = parse_file_name, .field = FIELD(trace),
        .is_common = 1,
        .help = "Write a timeline for ui.perfetto.dev. ctctl trace merge joins the files of several nodes." },
    [OPTION_TRACE_SIZE] = {
        .name = "trace-size", .value = "SIZE", .fallback = "64M", .variables = { "CT_TRACE_SIZE" },
        .parse = parse_bytes, .field = FIELD(trace_size),
        .help = "The memory for the trace on each node. When it is full, new events overwrite the oldest." },
    [OPTION_LOG_DIR] = {
        .name = "log-dir", .value = "DIR", .variables = { "PET_LOG_DIR" },
        .parse = parse_text, .field = FIELD(log_dir), .heading = "Output",
        .is_common = 1,
        .help = "Keep the workers' output in files under DIR. A worker's files are in <job>_.../attempt_N/<local "
                "rank>/. /dev/null keeps none." },
    [OPTION_REDIRECTS] = {
        .name = "redirects", .letter = 'r', .value = "MAP", .fallback = "0", .variables = { "PET_REDIRECTS" },
        .parse = parse_streams, .field = FIELD(redirects),
        .help = "Write the workers' output to files only. 1 is stdout, 2 stderr, 3 both; 0:3,1:1 sets it by local "
                "rank." },
    [OPTION_TEE] = {
        .name = "tee", .letter = 't', .value = "MAP", .fallback = "0", .variables = { "PET_TEE" },
        .parse = parse_streams, .field = FIELD(tee),
        .is_common = 1,
        .help = "Write output to files and to the terminal. Each line on the terminal has a prefix. MAP is as for "
                "--redirects." },
    [OPTION_LOG_LINE_PREFIX_TEMPLATE] = {
        .name = "log-line-prefix-template", .value = "TEXT", .variables = { "PET_LOG_LINE_PREFIX_TEMPLATE", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE" },
        .parse = parse_text, .field = FIELD(log_line_prefix_template),
        .help = "The prefix of --tee. It may contain ${role_name} ${local_rank} ${rank} ${hostname}." },
    [OPTION_LOCAL_RANKS_FILTER] = {
        .name = "local-ranks-filter", .value = "LIST", .variables = { "PET_LOCAL_RANKS_FILTER" },
        .parse = parse_rank_filter, .field = FIELD(local_ranks_filter),
        .help = "Show the output of these local ranks only." },
    [OPTION_DUPLICATE_STDOUT_FILTERS] = {
        .name = "duplicate-stdout-filters", .value = "LIST", .variables = { "PET_DUPLICATE_STDOUT_FILTERS" },
        .parse = parse_text, .field = FIELD(duplicate_stdout_filters),
        .help = "Copy lines of --tee that contain one of these words to filtered_stdout.log." },
    [OPTION_DUPLICATE_STDERR_FILTERS] = {
        .name = "duplicate-stderr-filters", .value = "LIST", .variables = { "PET_DUPLICATE_STDERR_FILTERS" },
        .parse = parse_text, .field = FIELD(duplicate_stderr_filters),
        .help = "Copy stderr lines of --tee that contain one of these words to filtered_stderr.log." },
    [OPTION_SHOW] = {
        .name = "show", .value = "RANKS", .variables = { "CT_SHOW" },
        .parse = parse_ranks, .field = FIELD(show),
        .help = "Show the output of these ranks only. RANKS is a list such as 0,4-7,@last. Files get the output of all ranks." },
    [OPTION_PREFIX] = {
        .name = "prefix", .value = "auto|none|TEXT", .fallback = "auto", .variables = { "CT_PREFIX" },
        .parse = parse_text, .field = FIELD(prefix),
        .help = "The text before each line of output. auto is [rank] if the output is a terminal and the job has "
                "several ranks." },
    [OPTION_NO_FOLD] = {
        .name = "no-fold", .fallback = "0", .variables = { "CT_NO_FOLD" },
        .parse = parse_switch, .field = FIELD(no_fold),
        .help = "Print equal lines of several ranks one by one." },
    [OPTION_QUIET] = {
        .name = "quiet", .fallback = "0", .variables = { "CT_QUIET" },
        .parse = parse_switch, .field = FIELD(quiet),
        .is_common = 1,
        .help = "Print only errors of ctrun itself." },
    [OPTION_STDIN] = {
        .name = "stdin", .value = "RANK|all|none", .fallback = "0", .variables = { "CT_STDIN" },
        .parse = parse_stdin, .field = FIELD(stdin_to),
        .help = "Ranks that inherit ctrun's standard input." },
    [OPTION_NUMA_BINDING] = {
        .name = "numa-binding", .value = "node|socket|exclusive|core-complex",
        .parse = parse_numa_binding, .field = FIELD(numa_binding), .heading = "Placement",
        .help = "Bind each worker to the CPUs near its GPU, as torchrun does." },
    [OPTION_BIND] = {
        .name = "bind", .value = "gpu|numa|core|none|LIST", .variables = { "CT_BIND" },
        .parse = parse_bind, .field = FIELD(bind),
        .is_common = 1,
        .help = "Bind each worker to CPUs. LIST has a set of CPUs for each local rank: 0-3;4-7." },
    [OPTION_GPUS] = {
        .name = "gpus", .value = "LIST", .variables = { "CT_GPUS" },
        .parse = parse_gpus, .field = FIELD(gpus),
        .is_common = 1,
        .help = "Use these GPUs of this node only. LIST is as 2,4,7, or has the GPUs' names." },
    [OPTION_VIRTUAL_LOCAL_RANK] = {
        .name = "virtual-local-rank", .fallback = "0", .variables = { "PET_VIRTUAL_LOCAL_RANK" },
        .parse = parse_switch, .field = FIELD(virtual_local_rank),
        .help = "Show each worker its own GPU only. Its LOCAL_RANK is 0." },
    [OPTION_REPORT] = {
        .name = "report", .value = "text|json", .bare = "text", .variables = { "CT_REPORT" },
        .parse = parse_report, .field = FIELD(report),
        .help = "Print where each worker runs. The report also shows what connects the GPUs." },
    [OPTION_EXEC_ON] = {
        .name = "exec-on", .value = "RANKS:COMMAND", .variables = { "CT_EXEC_ON" },
        .parse = parse_exec_on, .field = FIELD(exec_on), .heading = "Looking closer",
        .is_common = 1,
        .help = "Run these ranks under a command. For example 3:'gdb --args' or '*:valgrind'. If it is one rank, "
                "that rank has the terminal." },
    [OPTION_DRY_RUN] = {
        .name = "dry-run", .fallback = "0", .command_line_only = 1,
        .parse = parse_switch, .field = FIELD(dry_run),
        .is_common = 1,
        .help = "Print each worker's command; run nothing. The commands and their environment are quoted for a "
                "shell." },
    [OPTION_STORE_SECRET_FILE] = {
        .name = "store-secret-file", .value = "FILE", .variables = { "CT_STORE_SECRET_FILE" },
        .parse = parse_text, .field = FIELD(store_secret_file), .heading = "The store",
        .help = "The file of the secret that clients on other hosts must have. Its mode must be 600. All nodes "
                "need the same secret." },
    [OPTION_ENCRYPT] = {
        .name = "encrypt", .fallback = "0", .variables = { "CT_ENCRYPT" },
        .parse = parse_switch, .field = FIELD(encrypt),
        .is_common = 1,
        .help = "Encrypt all that leaves a host. The key is the store's secret. All nodes must have this option." },
    [OPTION_STORE_ALLOW] = {
        .name = "store-allow", .value = "any|NETWORKS", .variables = { "CT_STORE_ALLOW" },
        .parse = parse_networks, .field = FIELD(store_allow),
        .help = "Networks whose clients need no secret: 10.1.0.0/16,fd00::/8. Python's agents on other nodes are "
                "such clients. any allows all networks." },
    [OPTION_STORE_MEMORY] = {
        .name = "store-memory", .value = "SIZE", .fallback = "4G", .variables = { "CT_STORE_MEMORY" },
        .parse = parse_bytes, .field = FIELD(store_memory),
        .help = "The largest number of bytes that the store keeps." },
    [OPTION_STORE_REQUEST] = {
        .name = "store-request", .value = "SIZE", .fallback = "1G", .variables = { "CT_STORE_REQUEST" },
        .parse = parse_bytes, .field = FIELD(store_request),
        .help = "The largest number of bytes in one request to the store." },
    [OPTION_STORE_CLIENTS] = {
        .name = "store-clients", .value = "N", .fallback = "65536", .variables = { "CT_STORE_CLIENTS" },
        .parse = parse_count, .field = FIELD(store_clients),
        .help = "The largest number of connections to the store." },
    [OPTION_MONITOR_INTERVAL] = {
        .name = "monitor-interval", .value = "SECONDS", .fallback = "0.1", .variables = { "PET_MONITOR_INTERVAL" },
        .parse = parse_interval, .field = FIELD(monitor_interval), .heading = "Known from torchrun",
        .help = "No effect: ctrun notices the end of a worker at once." },
    [OPTION_START_METHOD] = {
        .name = "start-method", .value = "spawn|fork|forkserver", .fallback = "spawn", .variables = { "PET_START_METHOD" }, .any_in_environment = 1,
        .parse = parse_start_method, .field = FIELD(start_method),
        .help = "No effect: each worker is a separate program." },
    [OPTION_EVENT_LOG_HANDLER] = {
        .name = "event-log-handler", .value = "null|console", .fallback = "null", .variables = { "PET_EVENT_LOG_HANDLER" },
        .parse = parse_event_handler, .field = FIELD(event_log_handler),
        .help = "No effect: use --events=FILE." },
    [OPTION_LOGS_SPECS] = {
        .name = "logs-specs", .value = "NAME", .fallback = "default",
        .parse = parse_logs_specs, .field = FIELD(logs_specs),
        .help = "Must be default. ctrun refuses Python plug-ins." },
    [OPTION_JOB] = {
        .name = "job", .value = "FILE", .variables = { "CT_JOB" }, .command_line_only = 1,
        .parse = parse_text, .field = FIELD(job), .heading = "Help",
        .help = "Read options and variables from FILE. Without this option ctrun reads ./job.ini if it exists." },
    [OPTION_EXPLAIN] = {
        .name = "explain", .fallback = "0", .command_line_only = 1,
        .parse = parse_switch, .field = FIELD(explain),
        .is_common = 1,
        .help = "Print each option's value; run nothing. The output also shows where each value comes from." },
    [OPTION_PRINT_COMPLETION] = {
        .name = "print-completion", .value = "bash|zsh|fish", .command_line_only = 1,
        .parse = parse_shell, .field = FIELD(print_completion),
        .help = "Print a script by which the shell completes these options." },
    [OPTION_VERSION] = {
        .name = "version", .letter = 'V', .command_line_only = 1,
        .is_common = 1,
        .help = "Print the version and what is built in." },
    [OPTION_HELP] = {
        .name = "help", .letter = 'h', .command_line_only = 1,
        .is_common = 1,
        .help = "-h prints the most used options, --help all." },
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
