/* SPDX-License-Identifier: Apache-2.0 */
/* surroundings.c - takes settings from the scheduler or launcher that started this ctrun.  Each
 * scheduler or launcher has a row.
 *
 * The first row whose variable is set is used.  Rows are of two kinds.  In the first kind, the
 * launcher started one ctrun on each node (srun, a Kubernetes Job, mpirun -N 1).  The row provides
 * the number of nodes, the number of this node and the host of node 0.  In the second kind, a batch
 * script runs on one of several nodes (sbatch, PBS, LSF, Grid Engine).  The row provides the nodes,
 * and ctrun starts itself on them, by srun or in the same way as with --hostfile.
 *
 * In Slurm each node has as many workers as the job has tasks on that node.  If the node has one
 * task, or the user did not specify tasks, the node has as many workers as GPUs.
 *
 * A ctrun that `ctrun --hosts` started on a host gets all these settings from CT_HOSTS_NODE
 * instead.  A ctrun that a worker started (TORCHELASTIC_RUN_ID is set) runs a separate job, and
 * takes no settings. */
#include "config/surroundings.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/values/host_list.h"
#include "config/values/hosts_node.h"
#include "config/values/slurm.h"

/* Converts the value of a variable to the value of an option, in `text`.  Returns 0, or -1 if the
 * value can't be used.  Then ctrun fails if facts[] has a meaning for the fact; otherwise the
 * option keeps its default. */
typedef int reader(const char *value, char *text, size_t size);

/* The facts that a row may provide. */
enum fact { NODES, NODE, HEAD, PORT, RUN_ID, WORKERS, HOST_FILE, REMOTE_SHELL, FACTS };

static const struct {
    enum option option; /* the option that the fact sets */
    /* what is missing, for the error message; NULL if the option then keeps its default */
    const char *meaning;
} facts[FACTS] = { [NODES] = { OPTION_NNODES, "the number of nodes" },
                   [NODE] = { OPTION_NODE_RANK, "this node's number" },
                   [HEAD] = { OPTION_MASTER_ADDR, NULL },
                   [PORT] = { OPTION_MASTER_PORT, NULL },
                   [RUN_ID] = { OPTION_RDZV_ID, NULL },
                   [WORKERS] = { OPTION_NPROC_PER_NODE, NULL },
                   [HOST_FILE] = { OPTION_HOSTFILE, "a path of less than 300 bytes" },
                   [REMOTE_SHELL] = { OPTION_SSH, NULL } };

struct row {
    const char *name;     /* name of the scheduler or launcher, for messages */
    const char *present;  /* variable that the launcher sets */
    int (*is_here)(void); /* checks a further condition; NULL if `present` suffices */
    struct {
        const char *variable;
        reader *read;
    } says[FACTS];
    const char *gpus;   /* variable with the number of workers, if says[WORKERS] has none */
    const char *number; /* variable with this ctrun's number among the launcher's ctruns */
    /* `tasks` is the variable with the number of ctruns, and `all_nodes` is the variable with the
     * number of their nodes.  If all_nodes is NULL, `tasks` counts only the ctruns on this node. */
    const char *tasks, *all_nodes;
    const char *once;      /* command that starts one ctrun on each of %d nodes, for messages */
    const char *more_cpus; /* option that gives a ctrun %d processors, for messages */
    int is_srun;   /* 1 if a batch script starts ctrun, which starts itself on the nodes by srun */
    int shows_all; /* 1 if the launcher's output is the output of all nodes */
    int exchanges; /* 1 if the nodes find node 0 by PMIx or PMI */
    int needs_nnodes; /* 1 if the row is used only if the user gives --nnodes */
};

static const char *surroundings_variable(const char *name)
{
    const char *value = name ? getenv(name) : NULL;

    return value && *value ? value : NULL;
}

static int surroundings_number_of(const char *name)
{
    return surroundings_variable(name) ? atoi(surroundings_variable(name)) : 0;
}

/* ---- Readers --------------------------------------------------------------------- */

static int as_it_is(const char *value, char *text, size_t size)
{
    return snprintf(text, size, "%s", value) < (int)size ? 0 : -1;
}

static int number_from(const char *value, int least, char *text, size_t size)
{
    int number;

    if (value_int(value, &number) < 0 || number < least)
        return -1;
    snprintf(text, size, "%d", number);
    return 0;
}

static int a_count(const char *value, char *text, size_t size)
{
    return number_from(value, 1, text, size);
}

static int an_index(const char *value, char *text, size_t size)
{
    return number_from(value, 0, text, size);
}

static int first_host(const char *value, char *text, size_t size)
{
    return host_list_first(value, text, size);
}

/* Ignores 0 GPUs: such a job is for CPUs, and its number of workers is unknown. */
static int unless_zero(const char *value, char *text, size_t size)
{
    return strcmp(value, "0") != 0 ? as_it_is(value, text, size) : -1;
}

static int slurm_port(const char *value, char *text, size_t size)
{
    (void)value;
    snprintf(text, size, "%d", slurm_step_port());
    return 0;
}

static int slurm_run_id(const char *value, char *text, size_t size)
{
    return snprintf(text, size, "slurm-%s.%s", value, surroundings_variable("SLURM_STEP_ID"))
                   < (int)size
               ? 0
               : -1;
}

static int tasks_here(const char *value, char *text, size_t size)
{
    const int tasks = slurm_tasks_of_node(value, surroundings_number_of("SLURM_NODEID"));

    snprintf(text, size, "%d", tasks);
    return tasks > (surroundings_number_of("SLURM_GPUS_ON_NODE") > 0) ? 0 : -1;
}

/* Ignores the number of tasks if the user did not specify it (SLURM_NTASKS is not set), since Slurm
 * then counts processors. */
static int tasks_if_said(const char *value, char *text, size_t size)
{
    return surroundings_variable("SLURM_NTASKS") ? tasks_here(value, text, size) : -1;
}

/* Renumbers the nodes so that the main node is node 0.  AWS Batch numbers nodes from 0, but the
 * main node, of which the other nodes know the address, may have another number. */
static int aws_node(const char *value, char *text, size_t size)
{
    const int nodes = surroundings_number_of("AWS_BATCH_JOB_NUM_NODES");
    int node;

    if (value_int(value, &node) < 0 || node < 0 || node >= nodes)
        return -1;
    snprintf(text, size, "%d",
             (node - surroundings_number_of("AWS_BATCH_JOB_MAIN_NODE_INDEX") + nodes) % nodes);
    return 0;
}

/* Writes this node's address if this node is the main node.  On the main node no variable contains
 * that address, so it is read from the first interface. */
static int aws_own_address(const char *value, char *text, size_t size)
{
    struct ifaddrs *all = NULL;
    int found = -1;

    if (atoi(value) != surroundings_number_of("AWS_BATCH_JOB_NODE_INDEX") || getifaddrs(&all) < 0)
        return -1;
    for (const struct ifaddrs *at = all; at && found < 0; at = at->ifa_next)
        if (at->ifa_addr && at->ifa_addr->sa_family == AF_INET && !(at->ifa_flags & IFF_LOOPBACK)
            && at->ifa_flags & IFF_UP
            && inet_ntop(AF_INET, &((const struct sockaddr_in *)at->ifa_addr)->sin_addr, text,
                         (socklen_t)size))
            found = 0;
    freeifaddrs(all);
    return found;
}

/* Writes the ID of the value "ID#NODE".  Without the node, the value is the same on all nodes. */
static int aws_job(const char *value, char *text, size_t size)
{
    return snprintf(text, size, "%.*s", (int)strcspn(value, "#"), value) < (int)size ? 0 : -1;
}

/* Writes the master's host.  Older operators tell the master that its host is "localhost", where no
 * other pod can find the master.  Then the master uses its host name. */
static int pytorchjob_master(const char *value, char *text, size_t size)
{
    if (strcmp(value, "localhost") != 0)
        return as_it_is(value, text, size);
    return surroundings_number_of("RANK") == 0 && gethostname(text, size) == 0 ? 0 : -1;
}

/* Writes the host name of node 0.  Pods of an Indexed Job (and of a JobSet's jobs) differ only in
 * the number at the end of their name: the pod "train-3.workers.default.svc..." finds node 0 at
 * "train-0.workers.default.svc...". */
static int index_0_of_this_pod(const char *value, char *text, size_t size)
{
    const struct addrinfo hints = { .ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    char name[HOST_NAME] = "", tail[32];
    const char *domain = "";
    size_t length, cut;
    int result = -1;

    if (gethostname(name, sizeof name - 1) < 0)
        return -1;
    length = strlen(name);
    cut = (size_t)snprintf(tail, sizeof tail, "-%s", value);
    if (cut >= sizeof tail || length <= cut || strcmp(name + length - cut, tail) != 0)
        return -1;
    if (getaddrinfo(name, NULL, &hints, &found) == 0 && found->ai_canonname
        && !strncmp(found->ai_canonname, name, length) && found->ai_canonname[length] == '.')
        domain = found->ai_canonname + length;
    if (snprintf(text, size, "%.*s-0%s", (int)(length - cut), name, domain) < (int)size)
        result = 0;
    if (found)
        freeaddrinfo(found);
    return result;
}

static int blaunch(const char *value, char *text, size_t size)
{
    (void)value;
    return as_it_is("blaunch", text, size);
}

static int qrsh(const char *value, char *text, size_t size)
{
    (void)value;
    return as_it_is("qrsh -inherit", text, size);
}

/* ---- Rows ------------------------------------------------------------------------ */

/* Returns 1 in the shell of `srun --pty`, and in the shell of a salloc that runs the shell as a
 * step.  Such a shell has the step's variables, but the user starts only one ctrun in it.  Returns
 * 0 for `srun --pty ctrun`, where ctrun itself is the task. */
static int in_a_shell(void)
{
    return !getenv("CT_SLOTS") && surroundings_number_of("SLURM_TASK_PID") != getpid()
           && ((surroundings_variable("SLURM_PTY_PORT")
                && surroundings_number_of("SLURM_PROCID") == 0)
               || isatty(STDIN_FILENO));
}

static int in_a_step(void)
{
    return !in_a_shell();
}

static int is_batch_script(void)
{
    return !surroundings_variable("SLURM_STEP_ID") || in_a_shell();
}

/* Returns 1 in the script or shell of a heterogeneous job.  For such a job salloc sets the
 * variables only with the suffix of a component. */
static int is_heterogeneous_script(void)
{
    return is_batch_script() && surroundings_variable("SLURM_JOB_NUM_NODES_HET_GROUP_0");
}

/* Returns 1 in a pod of a PyTorchJob.  These pods have the variables of torchrun's workers, with
 * one "rank" for each pod.  Newer operators also set PET_NNODES and similar variables, which ctrun
 * then uses instead.  Outside of Kubernetes, any program may have set the variables of torchrun's
 * workers. */
static int is_pytorchjob(void)
{
    return surroundings_variable("KUBERNETES_SERVICE_HOST") && surroundings_variable("MASTER_ADDR")
           && surroundings_variable("RANK") && !surroundings_variable("PET_NNODES");
}

/* A launcher that started this process itself comes before the batch job in which the process runs.
 * mpiexec comes after srun, since srun may set the variables of PMI, too. */
static const struct row rows[] = {
    { .name = "mpirun",
      .present = "OMPI_COMM_WORLD_RANK",
      .says = { [NODES] = { "OMPI_COMM_WORLD_SIZE", a_count },
                [NODE] = { "OMPI_COMM_WORLD_RANK", an_index } },
      .number = "OMPI_COMM_WORLD_LOCAL_RANK",
      .tasks = "OMPI_COMM_WORLD_LOCAL_SIZE",
      .once = "mpirun -N 1",
      .more_cpus = "mpirun --bind-to none",
      .shows_all = 1,
      .exchanges = 1 },
    { .name = "flux run",
      .present = "FLUX_TASK_RANK",
      .says = { [NODES] = { "FLUX_JOB_NNODES", a_count },
                [NODE] = { "FLUX_TASK_RANK", an_index },
                [RUN_ID] = { "FLUX_JOB_ID", as_it_is } },
      .number = "FLUX_TASK_RANK",
      .tasks = "FLUX_JOB_SIZE",
      .all_nodes = "FLUX_JOB_NNODES",
      .once = "flux run --tasks-per-node=1",
      .more_cpus = "flux run --cores-per-task=%d",
      .exchanges = 1 },
    { .name = "srun",
      .present = "SLURM_STEP_ID",
      .is_here = in_a_step,
      .says = { [NODES] = { "SLURM_STEP_NUM_NODES", a_count },
                [NODE] = { "SLURM_NODEID", an_index },
                [HEAD] = { "SLURM_STEP_NODELIST", first_host },
                [PORT] = { "SLURM_JOB_ID", slurm_port },
                [WORKERS] = { "CT_SLOTS", tasks_here },
                [RUN_ID] = { "SLURM_JOB_ID", slurm_run_id } },
      .gpus = "SLURM_GPUS_ON_NODE",
      .number = "SLURM_PROCID",
      .tasks = "SLURM_STEP_NUM_TASKS",
      .all_nodes = "SLURM_STEP_NUM_NODES",
      /* With --ntasks in sbatch, srun ignores --ntasks-per-node unless it gets --ntasks, too. */
      .once = "srun --ntasks=%d --ntasks-per-node=1",
      .more_cpus = "srun --cpus-per-task=%d",
      .shows_all = 1 },
    { .name = "mpiexec",
      .present = "PMI_RANK",
      .says = { [NODES] = { "PMI_SIZE", a_count }, [NODE] = { "PMI_RANK", an_index } },
      .number = "MPI_LOCALRANKID",
      .tasks = "MPI_LOCALNRANKS",
      .once = "mpiexec -ppn 1",
      .shows_all = 1,
      .exchanges = 1 },
    { .name = "sbatch or salloc",
      .present = "SLURM_JOB_ID",
      .is_here = is_heterogeneous_script,
      .says = { [NODES] = { "SLURM_JOB_NUM_NODES_HET_GROUP_0", a_count },
                [WORKERS] = { "SLURM_TASKS_PER_NODE_HET_GROUP_0", tasks_if_said } },
      .is_srun = 1 },
    { .name = "sbatch or salloc",
      .present = "SLURM_JOB_ID",
      .is_here = is_batch_script,
      .says = { [NODES] = { "SLURM_JOB_NUM_NODES", a_count },
                [WORKERS] = { "SLURM_TASKS_PER_NODE", tasks_if_said } },
      .gpus = "SLURM_GPUS_ON_NODE",
      .is_srun = 1 },
    { .name = "LeaderWorkerSet",
      .present = "LWS_LEADER_ADDRESS",
      .says = { [NODES] = { "LWS_GROUP_SIZE", a_count },
                [NODE] = { "LWS_WORKER_INDEX", an_index },
                [HEAD] = { "LWS_LEADER_ADDRESS", as_it_is } } },
    { .name = "SkyPilot",
      .present = "SKYPILOT_NODE_RANK",
      .says = { [NODES] = { "SKYPILOT_NUM_NODES", a_count },
                [NODE] = { "SKYPILOT_NODE_RANK", an_index },
                [HEAD] = { "SKYPILOT_NODE_IPS", first_host },
                [WORKERS] = { "SKYPILOT_NUM_GPUS_PER_NODE", unless_zero },
                [RUN_ID] = { "SKYPILOT_TASK_ID", as_it_is } } },
    { .name = "AWS Batch",
      .present = "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS",
      .says = { [NODES] = { "AWS_BATCH_JOB_NUM_NODES", a_count },
                [NODE] = { "AWS_BATCH_JOB_NODE_INDEX", aws_node },
                [HEAD] = { "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS", as_it_is },
                [RUN_ID] = { "AWS_BATCH_JOB_ID", aws_job } } },
    { .name = "AWS Batch",
      .present = "AWS_BATCH_JOB_NODE_INDEX",
      .says = { [NODES] = { "AWS_BATCH_JOB_NUM_NODES", a_count },
                [NODE] = { "AWS_BATCH_JOB_NODE_INDEX", aws_node },
                [HEAD] = { "AWS_BATCH_JOB_MAIN_NODE_INDEX", aws_own_address },
                [RUN_ID] = { "AWS_BATCH_JOB_ID", aws_job } } },
    { .name = "PyTorchJob",
      .present = "WORLD_SIZE",
      .is_here = is_pytorchjob,
      .says = { [NODES] = { "WORLD_SIZE", a_count },
                [NODE] = { "RANK", an_index },
                [HEAD] = { "MASTER_ADDR", pytorchjob_master },
                [PORT] = { "MASTER_PORT", as_it_is } } },
    { .name = "a Kubernetes Job",
      .present = "JOB_COMPLETION_INDEX",
      .says = { [NODE] = { "JOB_COMPLETION_INDEX", an_index },
                [HEAD] = { "JOB_COMPLETION_INDEX", index_0_of_this_pod } },
      .needs_nnodes = 1 }, /* in many Jobs the pods have nothing in common */
    { .name = "PBS",
      .present = "PBS_NODEFILE",
      .says = { [HOST_FILE] = { "PBS_NODEFILE", as_it_is } } },
    { .name = "LSF",
      .present = "LSB_DJOB_HOSTFILE",
      .says = { [HOST_FILE] = { "LSB_DJOB_HOSTFILE", as_it_is },
                [REMOTE_SHELL] = { "LSB_DJOB_HOSTFILE", blaunch } } },
    { .name = "Grid Engine",
      .present = "PE_HOSTFILE",
      .says = { [HOST_FILE] = { "PE_HOSTFILE", as_it_is },
                [REMOTE_SHELL] = { "PE_HOSTFILE", qrsh } } },
};

static const struct row *find_row(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (surroundings_variable(rows[i].present) && (!rows[i].is_here || rows[i].is_here()))
            return &rows[i];
    return NULL;
}

/* ---- Into the settings ----------------------------------------------------------- */

static int is_given(const struct options *options, enum option option)
{
    return options->settings[option].from != FROM_DEFAULT;
}

static int is_elastic(const struct options *options)
{
    return strcmp(options->settings[OPTION_RDZV_BACKEND].text, "static") != 0;
}

static void surroundings_give(struct options *options, const struct row *row, enum option option,
                              const char *text, const char *from)
{
    struct surroundings *s = &options->surroundings;

    if (is_given(options, option) || s->used == sizeof s->texts / sizeof *s->texts)
        return;
    snprintf(s->texts[s->used], sizeof *s->texts, "%s", text);
    options->settings[option] =
        (struct setting){ FROM_ENVIRONMENT, s->texts[s->used++], from, 0, row->name };
}

/* Reads a fact from the row's variable.  Returns 1 if `text` has the fact, and 0 if there is no
 * fact and none is needed.  Returns -1 with an error message in `error` if the fact is needed but
 * missing. */
static int read_fact(const struct row *row, enum fact fact, char *text, size_t size, char *error,
                     size_t error_size)
{
    const char *name = row->says[fact].variable, *value = surroundings_variable(name);

    if (!row->says[fact].read)
        return 0;
    if (value && row->says[fact].read(value, text, size) == 0)
        return 1;
    *text = 0;
    if (!facts[fact].meaning)
        return 0;
    snprintf(error, error_size,
             "%s%s%.100s: %s should set it to %s; give --%s=N, or --standalone for a job on this "
             "node alone",
             name, value ? "=" : " is not set", value ? value : "", row->name, facts[fact].meaning,
             option_row(facts[fact].option)->name);
    return -1;
}

static void give_workers(struct options *options, const struct row *row)
{
    const char *value = surroundings_variable(row->says[WORKERS].variable);
    char text[32];

    if (value && row->says[WORKERS].read(value, text, sizeof text) == 0)
        surroundings_give(options, row, OPTION_NPROC_PER_NODE, text, row->says[WORKERS].variable);
    else if (surroundings_number_of(row->gpus) > 0)
        surroundings_give(options, row, OPTION_NPROC_PER_NODE, surroundings_variable(row->gpus),
                          row->gpus);
}

/* Sets --rdzv-endpoint to node 0's host, where elastic nodes join and get their numbers. */
static void give_endpoint(struct options *options, const struct row *row)
{
    char host[HOST_NAME], port[16], endpoint[HOST_NAME + 24], none[1];

    if (read_fact(row, HEAD, host, sizeof host, none, sizeof none) <= 0)
        return;
    if (read_fact(row, PORT, port, sizeof port, none, sizeof none) <= 0)
        strcpy(port, "29400");
    snprintf(endpoint, sizeof endpoint, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    surroundings_give(options, row, OPTION_RDZV_ENDPOINT, endpoint, row->says[HEAD].variable);
}

static enum outcome give_all(struct options *options, const struct row *row, char *error,
                             size_t size)
{
    const int elastic = is_elastic(options);
    const int endpoint = elastic || is_given(options, OPTION_RDZV_ENDPOINT);
    char text[sizeof options->surroundings.texts[0]];

    give_workers(options, row);
    for (enum fact i = 0; i < FACTS; i++) {
        int got;

        if (is_given(options, facts[i].option) || i == WORKERS
            || (endpoint && (i == HEAD || i == PORT)) || (elastic && i == NODE))
            continue;
        if ((got = read_fact(row, i, text, sizeof text, error, size)) < 0)
            return OPTIONS_WRONG;
        if (got > 0)
            surroundings_give(options, row, facts[i].option, text, row->says[i].variable);
    }
    if (elastic)
        give_endpoint(options, row);
    return OPTIONS_RUN;
}

/* Fails because each task would be a separate job, and each would succeed.  Only the first task
 * prints the error message. */
static enum outcome refuse_tasks(const struct row *row, char *error, size_t size)
{
    const int tasks = surroundings_number_of(row->tasks);
    const int nodes = row->all_nodes ? surroundings_number_of(row->all_nodes) : 1;
    char once[64];

    snprintf(once, sizeof once, row->once, nodes);
    snprintf(
        error, size,
        "%s started ctrun as %d tasks on %d %s, and without --nnodes each task is a separate job; "
        "for one job, start one task per node: %s ctrun ...; for %d jobs, add --standalone",
        row->name, tasks, nodes, nodes == 1 ? "node" : "nodes", once, tasks);
    if (surroundings_number_of(row->number) != 0)
        *error = 0;
    return OPTIONS_WRONG;
}

/* Returns 1 if the options say which node this is, or where the other nodes are. */
static int is_by_hand(const struct options *options)
{
    static const enum option by_hand[] = { OPTION_NODE_RANK, OPTION_MASTER_ADDR,
                                           OPTION_RDZV_ENDPOINT };

    for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++)
        if (is_given(options, by_hand[i]))
            return 1;
    return 0;
}

/* Sets *wanted to --nnodes, which is not parsed yet, or to `nodes` if --nnodes is not given.
 * Returns 0, or -1 if --nnodes is invalid; parse_settings() then reports the error later. */
static int nodes_wanted(const struct options *options, int nodes, struct nodes_range *wanted)
{
    struct why why;

    *wanted = (struct nodes_range){ nodes, nodes };
    return is_given(options, OPTION_NNODES)
               ? parse_nnodes(options->settings[OPTION_NNODES].text, wanted, &why)
               : 0;
}

static enum outcome refuse_nnodes(const struct options *options, const struct row *row, int nodes,
                                  char *error, size_t size)
{
    char words[600];

    setting_words(options, OPTION_NNODES, words, sizeof words);
    snprintf(error, size,
             "%s, but %s started ctrun on %d nodes (%s=%.20s); without --nnodes the job has all of "
             "them, and with --nnodes=1 or --standalone each node runs a separate job",
             words, row->name, nodes, row->says[NODES].variable,
             surroundings_variable(row->says[NODES].variable));
    return OPTIONS_WRONG;
}

static enum outcome refuse_head(const struct options *options, const struct row *row, int nodes,
                                char *error, size_t size)
{
    const char *name = row->says[HEAD].variable;
    char host[HOST_NAME] = "", says[HOST_NAME + 200] = "its variables do not say";

    gethostname(host, sizeof host - 1);
    if (name)
        snprintf(says, sizeof says, "%s%s%.100s on host %s does not say", name,
                 surroundings_variable(name) ? "=" : "",
                 surroundings_variable(name) ? surroundings_variable(name) : "", host);
    snprintf(error, size,
             "%s started ctrun on %d nodes, but %s where node 0 is: add %s, or --standalone for %d "
             "jobs",
             row->name, nodes, says,
             is_elastic(options) ? "--rdzv-endpoint=HOST:29400" : "--master-addr=HOST", nodes);
    return OPTIONS_WRONG;
}

/* Applies the row of a launcher that started a ctrun on each node. */
static enum outcome started_on_each(struct options *options, const struct row *row, int nodes,
                                    char *error, size_t size)
{
    struct nodes_range wanted;

    if (row->tasks && surroundings_number_of(row->tasks) > (row->all_nodes ? nodes : 1)) {
        if (is_given(options, OPTION_NNODES))
            return OPTIONS_RUN; /* the user has arranged the nodes */
        return refuse_tasks(row, error, size);
    }
    if (nodes_wanted(options, nodes, &wanted) < 0)
        return OPTIONS_RUN;
    if (wanted.max == 1 || nodes == 1) {
        give_workers(options, row);
        return OPTIONS_RUN;
    }
    if (nodes < wanted.min || nodes > wanted.max)
        return is_by_hand(options) ? OPTIONS_RUN : refuse_nnodes(options, row, nodes, error, size);
    if (give_all(options, row, error, size) != OPTIONS_RUN)
        return OPTIONS_WRONG;
    options->surroundings.one_output = row->shows_all;
    if (is_given(options, OPTION_MASTER_ADDR) || is_given(options, OPTION_RDZV_ENDPOINT))
        return OPTIONS_RUN;
    if (row->exchanges && !is_elastic(options) && !is_given(options, OPTION_MASTER_PORT)) {
        options->surroundings.exchange_of = row->name;
        return OPTIONS_RUN;
    }
    return refuse_head(options, row, nodes, error, size);
}

/* Applies the row of a batch script, in which ctrun runs once.  ctrun will start itself on the
 * nodes by srun, unless the user has arranged the nodes. */
static enum outcome started_once(struct options *options, const struct row *row, int nodes,
                                 char *error, size_t size)
{
    struct nodes_range wanted;

    if (is_by_hand(options) || nodes_wanted(options, nodes, &wanted) < 0)
        return OPTIONS_RUN;
    if (wanted.min > nodes) {
        snprintf(error, size, "--nnodes=%s: the Slurm job %s has %d %s",
                 options->settings[OPTION_NNODES].text, surroundings_variable(row->present), nodes,
                 nodes == 1 ? "node" : "nodes");
        return OPTIONS_WRONG;
    }
    if (surroundings_number_of("SLURM_HET_SIZE") > 1 && !is_given(options, OPTION_NNODES)) {
        snprintf(error, size,
                 "SLURM_HET_SIZE=%d: ctrun starts itself on the nodes of one component only; srun "
                 "--het-group=0-%d ./app starts the ranks of all, and ctrun --nnodes=%d uses the "
                 "first component",
                 surroundings_number_of("SLURM_HET_SIZE"),
                 surroundings_number_of("SLURM_HET_SIZE") - 1, nodes);
        return OPTIONS_WRONG;
    }
    if (wanted.max > nodes)
        wanted.max = nodes;
    if (wanted.max > 1) {
        options->surroundings.srun_nodes = wanted.max;
        return OPTIONS_RUN;
    }
    give_workers(options, row);
    if (is_elastic(options)) /* this node is the only one */
        surroundings_give(options, row, OPTION_RDZV_ENDPOINT, "127.0.0.1:0",
                          row->says[NODES].variable);
    return OPTIONS_RUN;
}

/* Applies CT_HOSTS_NODE.  `ctrun --hosts` started this ctrun, and passed the other settings as
 * arguments. */
static enum outcome started_by_hosts(struct options *options, const char *value, char *error,
                                     size_t size)
{
    static const struct row row = { .name = "ctrun --hosts" };
    struct hosts_node node;
    char text[16];

    if (hosts_node_read(&node, value) < 0) {
        snprintf(error, size,
                 HOSTS_NODE_VARIABLE "=%.100s: ctrun --hosts sets it for the ctruns that it starts "
                                     "on the hosts; unset it",
                 value);
        return OPTIONS_WRONG;
    }
    options->surroundings.is_host_of_job = 1;
    options->surroundings.host_names = surroundings_variable(HOSTS_NAMES_VARIABLE);
    options->surroundings.port_fd = node.port_fd > 0 ? node.port_fd : 0;
    options->surroundings.terminals = node.terminals;
    snprintf(text, sizeof text, "%d", node.workers);
    if (node.workers > 0)
        surroundings_give(options, &row, OPTION_NPROC_PER_NODE, text, HOSTS_NODE_VARIABLE);
    if (node.nodes == 1)
        return OPTIONS_RUN;
    options->surroundings.one_output = 1;
    snprintf(text, sizeof text, "%d", node.nodes);
    surroundings_give(options, &row, OPTION_NNODES, text, HOSTS_NODE_VARIABLE);
    snprintf(text, sizeof text, "%d", node.node);
    surroundings_give(options, &row, OPTION_NODE_RANK, text, HOSTS_NODE_VARIABLE);
    snprintf(text, sizeof text, "%d", node.port);
    if (node.port > 0)
        surroundings_give(options, &row, OPTION_MASTER_PORT, text, HOSTS_NODE_VARIABLE);
    surroundings_give(options, &row, OPTION_MASTER_ADDR, node.head, HOSTS_NODE_VARIABLE);
    surroundings_give(options, &row, OPTION_RDZV_ID, node.run_id, HOSTS_NODE_VARIABLE);
    return OPTIONS_RUN;
}

enum outcome surroundings_apply(struct options *options, char *error, size_t size)
{
    const struct row *row = find_row();
    struct nodes_range wanted;
    char text[32] = "";
    int nodes;

    options->surroundings.behind_srun = getenv("CT_SLOTS") != NULL;
    if (surroundings_variable(HOSTS_NODE_VARIABLE))
        return started_by_hosts(options, surroundings_variable(HOSTS_NODE_VARIABLE), error, size);
    if (row
        && !surroundings_variable(
            "TORCHELASTIC_RUN_ID")) /* ctrun's own srun gives ctrun all processors of the job */
        options->surroundings.more_cpus =
            options->surroundings.behind_srun ? "sbatch --cpus-per-task=%d" : row->more_cpus;
    if (!row || is_given(options, OPTION_STANDALONE) || surroundings_variable("TORCHELASTIC_RUN_ID")
        || is_given(options, OPTION_HOSTS) || is_given(options, OPTION_HOSTFILE))
        return OPTIONS_RUN;
    if (row->says[HOST_FILE].read)
        return is_given(options, OPTION_NNODES) || is_given(options, OPTION_NODE_RANK)
                   ? OPTIONS_RUN
                   : give_all(options, row, error, size);
    if (row->is_srun && !surroundings_variable(row->says[NODES].variable))
        return OPTIONS_RUN;
    if (nodes_wanted(options, 1, &wanted) < 0 || (row->needs_nnodes && wanted.max == 1))
        return OPTIONS_RUN;
    if (!row->needs_nnodes && read_fact(row, NODES, text, sizeof text, error, size) < 0
        && !is_given(options, OPTION_NNODES))
        return OPTIONS_WRONG;
    nodes = *text ? atoi(text) : wanted.max;
    return row->is_srun ? started_once(options, row, nodes, error, size)
                        : started_on_each(options, row, nodes, error, size);
}
