/* SPDX-License-Identifier: Apache-2.0 */
/* surroundings.c - one row for each scheduler or launcher that may have started this ctrun.
 *
 * The first row whose variable is set counts.  There are two kinds.  In the first, something starts
 * one ctrun on each node (srun, a Kubernetes Job, mpirun -N 1): the row says how many nodes there
 * are, which one this is and where node 0 is.  In the second, a batch script runs on one node of
 * several (sbatch, PBS, LSF, Grid Engine): the row says which nodes, and ctrun starts itself on
 * them, by srun or as --hostfile does.
 *
 * In Slurm each node has as many workers as the job has tasks there.  Where that is one, or was not
 * said, it has as many as it has GPUs.
 *
 * A ctrun that `ctrun --hosts` started on a host knows all that from CT_HOSTS_NODE.  One that a
 * worker started (TORCHELASTIC_RUN_ID) is a job of its own: nothing is read. */
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

/* From a variable's value to an option's.  -1: it says nothing that can be used.  Of nodes, this
 * node and node 0's host that is an error, of the others the option keeps its default. */
typedef int reader(const char *value, char *text, size_t size);

/* What a row may say. */
enum fact { NODES, NODE, HEAD, PORT, RUN_ID, WORKERS, HOST_FILE, REMOTE_SHELL, FACTS };

static const struct {
    enum option option;  /* that gets it */
    const char *meaning; /* for the error where it is missing; NULL: the option has its default */
} facts[FACTS] = { [NODES] = { OPTION_NNODES, "the number of nodes" },
                   [NODE] = { OPTION_NODE_RANK, "this node's number" },
                   [HEAD] = { OPTION_MASTER_ADDR, NULL },
                   [PORT] = { OPTION_MASTER_PORT, NULL },
                   [RUN_ID] = { OPTION_RDZV_ID, NULL },
                   [WORKERS] = { OPTION_NPROC_PER_NODE, NULL },
                   [HOST_FILE] = { OPTION_HOSTFILE, "a path of less than 300 bytes" },
                   [REMOTE_SHELL] = { OPTION_SSH, NULL } };

struct row {
    const char *name;     /* for messages: what started this process */
    const char *present;  /* the variable that it sets */
    int (*is_here)(void); /* more than that; NULL: nothing more */
    struct {
        const char *variable;
        reader *read;
    } says[FACTS];
    const char *gpus;   /* the variable that says how many workers, where WORKERS does not */
    const char *number; /* the variable that numbers the ctruns it started */
    const char *tasks,
        *all_nodes;        /* variables: so many ctruns on so many nodes; NULL: one a node */
    const char *once;      /* how it starts one ctrun a node, where it started several; %d: nodes */
    const char *more_cpus; /* its option that gives a ctrun %d processors */
    int is_srun;           /* of the second kind: srun starts the nodes */
    int shows_all;         /* its output is that of all nodes */
    int exchanges;         /* by PMIx or PMI the nodes find node 0 */
    int needs_nnodes;      /* it counts for nothing unless the user says --nnodes */
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

/* 0 GPUs: a job for CPUs, and how many workers it wants is not said. */
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

/* In a job that did not say how many tasks it has, Slurm counts processors. */
static int tasks_if_said(const char *value, char *text, size_t size)
{
    return surroundings_variable("SLURM_NTASKS") ? tasks_here(value, text, size) : -1;
}

/* AWS Batch numbers nodes from 0, but the main one, which the others know, may be another. */
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

/* The main node has no variable with its own address: it is that of its first interface. */
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

/* "ID#NODE": without the node it is the same on all of them. */
static int aws_job(const char *value, char *text, size_t size)
{
    return snprintf(text, size, "%.*s", (int)strcspn(value, "#"), value) < (int)size ? 0 : -1;
}

/* Older operators call the master's own host "localhost", where no other pod finds it. */
static int pytorchjob_master(const char *value, char *text, size_t size)
{
    if (strcmp(value, "localhost") != 0)
        return as_it_is(value, text, size);
    return surroundings_number_of("RANK") == 0 && gethostname(text, size) == 0 ? 0 : -1;
}

/* Pods of an Indexed Job (and of a JobSet's jobs) differ by the number behind their name:
 * "train-3.workers.default.svc..." finds node 0 at "train-0.workers.default.svc...". */
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

/* The shell of `srun --pty`, and of salloc where it is a step, has the step's variables, but a
 * ctrun typed there is started once.  `srun --pty ctrun` is a task itself, and no such shell. */
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

/* In a heterogeneous job salloc sets these variables for each component only. */
static int is_heterogeneous_script(void)
{
    return is_batch_script() && surroundings_variable("SLURM_JOB_NUM_NODES_HET_GROUP_0");
}

/* Its pods have the variables of torchrun's workers, one "rank" a pod; newer operators set
 * PET_NNODES and the like beside them, which count.  Outside of Kubernetes they may be left from
 * anything. */
static int is_pytorchjob(void)
{
    return surroundings_variable("KUBERNETES_SERVICE_HOST") && surroundings_variable("MASTER_ADDR")
           && surroundings_variable("RANK") && !surroundings_variable("PET_NNODES");
}

/* What started this very process stands before the batch job that it is in; mpiexec behind srun,
 * which may offer PMI, too. */
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
      .once = "srun --ntasks=%d --ntasks-per-node=1", /* the second is ignored without the first
                                                         where sbatch said --ntasks */
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
      .needs_nnodes = 1 }, /* the pods of many Jobs have nothing to do with each other */
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

/* What the row says of a fact, if it is needed.  1: text has it; 0: nothing;
 * -1: error has the sentence. */
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
             "%s%s%.100s: %s should give %s there; --%s=N gives it, --standalone is a job of this "
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

/* Elastic nodes meet at node 0's host, and get their numbers there. */
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

/* Each would be a job of its own, and each would succeed.  The first prints the error for all. */
static enum outcome refuse_tasks(const struct row *row, char *error, size_t size)
{
    const int tasks = surroundings_number_of(row->tasks);
    const int nodes = row->all_nodes ? surroundings_number_of(row->all_nodes) : 1;
    char once[64];

    snprintf(once, sizeof once, row->once, nodes);
    snprintf(error, size,
             "%s started ctrun as %d tasks on %d %s, and without --nnodes each is a job of its "
             "own: for one job, one task a node: %s ctrun ...; for %d jobs, --standalone",
             row->name, tasks, nodes, nodes == 1 ? "node" : "nodes", once, tasks);
    if (surroundings_number_of(row->number) != 0)
        *error = 0;
    return OPTIONS_WRONG;
}

/* The options say which node this is, or where the others are. */
static int is_by_hand(const struct options *options)
{
    static const enum option by_hand[] = { OPTION_NODE_RANK, OPTION_MASTER_ADDR,
                                           OPTION_RDZV_ENDPOINT };

    for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++)
        if (is_given(options, by_hand[i]))
            return 1;
    return 0;
}

/* --nnodes, which is not parsed yet; nodes if it is not given.  -1: it is refused later. */
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
             "%s, but %s started ctrun on %d nodes (%s=%.20s): without --nnodes the job has them "
             "all; --nnodes=1 or --standalone is a job of each node alone",
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

/* The first kind: something started a ctrun on each node. */
static enum outcome started_on_each(struct options *options, const struct row *row, int nodes,
                                    char *error, size_t size)
{
    struct nodes_range wanted;

    if (row->tasks && surroundings_number_of(row->tasks) > (row->all_nodes ? nodes : 1)) {
        if (is_given(options, OPTION_NNODES))
            return OPTIONS_RUN; /* the user's own arrangement */
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

/* The second kind: srun is started from here, unless the user arranges the nodes. */
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
    if (is_elastic(options)) /* no other node will come */
        surroundings_give(options, row, OPTION_RDZV_ENDPOINT, "127.0.0.1:0",
                          row->says[NODES].variable);
    return OPTIONS_RUN;
}

/* `ctrun --hosts` started this one, and its words have the rest. */
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
            "TORCHELASTIC_RUN_ID")) /* our own srun gives ctrun all processors of the job */
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
