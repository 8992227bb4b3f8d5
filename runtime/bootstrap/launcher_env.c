/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_env.c - reads rank, size and store address from the environment.
 *
 * Each launcher is a row of variable names.  The first row with a rank variable that is set is
 * used.  The row of RANK comes first.  ctrun and torchrun set RANK, and a user may set RANK to
 * override the other rows. */
#include "runtime/bootstrap/launcher_env.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/values/host_list.h"
#include "config/values/slurm.h"
#include "runtime/exchange/launcher_exchange.h"
#include "runtime/util/process_state.h"

struct launcher {
    const char *name;
    const char *rank, *size, *local_rank, *local_size;
    /* A variable that is "1" if the job has one node; NULL if local_size shows this. */
    const char *one_node;
    const char *jobs[3]; /* variables that together identify the job on this host */
    /* A variable without which the row is not used, or NULL.  A Slurm step sets SLURM_STEP_ID, an
     * allocation does not. */
    const char *required;
};

static const struct launcher launchers[] = {
    { "env", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", NULL, { NULL }, NULL },
    { "mpirun",
      "OMPI_COMM_WORLD_RANK",
      "OMPI_COMM_WORLD_SIZE",
      "OMPI_COMM_WORLD_LOCAL_RANK",
      "OMPI_COMM_WORLD_LOCAL_SIZE",
      NULL,
      { "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid" },
      NULL },
    { "mpiexec",
      "PMI_RANK",
      "PMI_SIZE",
      "MPI_LOCALRANKID",
      "MPI_LOCALNRANKS",
      NULL,
      { NULL },
      NULL },
    { "srun",
      "SLURM_PROCID",
      "SLURM_NTASKS",
      "SLURM_LOCALID",
      NULL,
      "SLURM_STEP_NUM_NODES",
      { "SLURM_JOB_ID", "SLURM_STEP_ID", NULL },
      "SLURM_STEP_ID" },
};

/* Returns the variable's value, or NULL if the variable is unset or empty. */
static const char *launcher_env_variable(const char *name)
{
    const char *value = name ? getenv(name) : NULL;

    return value && *value ? value : NULL;
}

static ct_status launcher_env_number(const char *name, int least, int most, int *value)
{
    const char *text = launcher_env_variable(name);
    char *end;
    long parsed;

    errno = 0;
    parsed = strtol(text, &end, 10);
    if (*end || errno || isspace((unsigned char)*text) || parsed < least || parsed > most)
        return ct_fail(CT_ERR_INVALID, "%s=%s: it must be a number from %d to %d", name, text,
                       least, most);
    *value = (int)parsed;
    return CT_OK;
}

/* Returns 1 if this process is a task of an srun that a worker of ctrun or torchrun started.  Then
 * RANK, MASTER_ADDR and the like belong to the worker, and are ignored. */
static int is_step_of_a_worker(void)
{
    const char *task = launcher_env_variable("SLURM_TASK_PID");

    return task && launcher_env_variable("SLURM_STEP_ID")
           && launcher_env_variable("TORCHELASTIC_RUN_ID") && atoi(task) == getpid();
}

static const struct launcher *find_launcher(void)
{
    for (size_t i = is_step_of_a_worker() ? 1 : 0; i < sizeof launchers / sizeof *launchers; i++) {
        const struct launcher *l = &launchers[i];

        if (launcher_env_variable(l->rank) && (!l->required || launcher_env_variable(l->required)))
            return l;
    }
    return NULL;
}

/* ---- Rank and size -------------------------------------------------------- */

static ct_status check_rank(const char *rank_name, const char *size_name, int rank, int size)
{
    if (rank >= size)
        return ct_fail(CT_ERR_INVALID, "%s=%d, but %s=%d: %s must be from 0 to %d", rank_name, rank,
                       size_name, size, rank_name, size - 1);
    return CT_OK;
}

static ct_status from_launcher(const struct launcher *l, struct identity *who)
{
    ct_status status;

    if (!launcher_env_variable(l->size))
        return ct_fail(CT_ERR_INVALID,
                       "%s is set (%s) but %s is not; start the program with "
                       "ctrun, or set both",
                       l->rank, launcher_env_variable(l->rank), l->size);
    who->launcher = l->name;
    status = launcher_env_number(l->size, 1, INT_MAX, &who->size);
    if (status == CT_OK)
        status = launcher_env_number(l->rank, 0, INT_MAX, &who->rank);
    if (status == CT_OK)
        status = check_rank(l->rank, l->size, who->rank, who->size);
    if (status == CT_OK && launcher_env_variable(l->local_rank))
        status = launcher_env_number(l->local_rank, 0, INT_MAX, &who->local_rank);
    if (status == CT_OK && launcher_env_variable(l->local_size))
        status = launcher_env_number(l->local_size, 1, INT_MAX, &who->local_size);
    return status;
}

static ct_status from_environment(struct identity *who)
{
    const struct launcher *l = find_launcher();

    if (l)
        return from_launcher(l, who);
    if (launcher_env_variable("WORLD_SIZE"))
        return ct_fail(CT_ERR_INVALID,
                       "WORLD_SIZE is set (%s) but RANK is not; start the program "
                       "with ctrun, or set both",
                       launcher_env_variable("WORLD_SIZE"));
    if (launcher_env_variable("PMI_PORT")
        && launcher_env_variable("PMI_ID")) /* without ranks, each process would be its own world */
        return ct_fail(
            CT_ERR_INVALID,
            "PMI_PORT is set but PMI_RANK is not; start the program with mpiexec without "
            "-pmi-port");
    who->launcher = "alone";
    who->rank = 0;
    who->size = who->local_size = 1;
    return CT_OK;
}

static ct_status from_options(const ct_init_options *options, struct identity *who)
{
    ct_status status = CT_OK;

    if (options->rank < -1 || options->world_size < -1 || options->world_size == 0)
        return ct_fail(CT_ERR_INVALID,
                       "ct_init_options: rank %d is not valid with world_size %d; -1 takes a value "
                       "from the environment",
                       options->rank, options->world_size);
    if (options->rank < 0 || options->world_size < 0)
        status = from_environment(who);
    if (status != CT_OK)
        return status;
    if (options->world_size > 0)
        who->size = options->world_size;
    if (options->rank >= 0)
        who->rank = options->rank;
    if (options->rank >= 0 && options->world_size > 0) {
        who->launcher = "arguments";
        if (launcher_env_variable("LOCAL_RANK"))
            status = launcher_env_number("LOCAL_RANK", 0, INT_MAX, &who->local_rank);
    }
    return status == CT_OK ? check_rank("rank", "world_size", who->rank, who->size) : status;
}

/* ---- Store address -------------------------------------------------------- */

/* Reads "tcp://host:port" or "tcp://[v6]:port". */
static ct_status from_url(const char *url, struct identity *who)
{
    const char *host = url + strlen("tcp://"), *colon = strrchr(host, ':');
    size_t length = colon ? (size_t)(colon - host) : 0;
    char *end;
    long port;

    if (!colon || length == 0 || length >= sizeof who->address)
        return ct_fail(CT_ERR_INVALID, "init_method \"%s\": it must be tcp://host:port", url);
    port = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end || port < 1 || port > 65535)
        return ct_fail(CT_ERR_INVALID, "init_method \"%s\": the port must be from 1 to 65535", url);
    if (*host == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    }
    snprintf(who->address, sizeof who->address, "%.*s", (int)length, host);
    who->port = (int)port;
    return CT_OK;
}

/* Writes the pid and start time of the parent process, which identify the job if no variable
 * does. */
static void name_parent(char *text, size_t size)
{
    char started[PROCESS_FIELD];

    snprintf(text, size, "%d.%llu", (int)getppid(),
             strtoull(process_stat(getppid(), 22, started), NULL, 10));
}

static int all_on_this_node(const struct launcher *l, const struct identity *who)
{
    if (who->local_size > 0)
        return who->local_size == who->size;
    return l->one_node && launcher_env_variable(l->one_node)
           && !strcmp(launcher_env_variable(l->one_node), "1");
}

/* Writes the value or, if it is long, its start and its hash.  Long values may differ only at the
 * end, such as Open MPI's, which end with a pid. */
static void print_short(char *text, size_t size, const char *value)
{
    unsigned hash = 2166136261u; /* FNV-1a */

    for (const char *c = value; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    if (strlen(value) <= 30)
        snprintf(text, size, "%s", value);
    else
        snprintf(text, size, "%.21s-%08x", value, hash);
}

static void name_socket(const struct launcher *l, struct identity *who)
{
    char job[80] = "";

    for (size_t i = 0; i < sizeof l->jobs / sizeof *l->jobs && l->jobs[i]; i++)
        if (launcher_env_variable(l->jobs[i])) {
            const size_t used = strlen(job);

            snprintf(job + used, sizeof job - used, "%s", used ? "." : "");
            print_short(job + strlen(job), sizeof job - strlen(job),
                        launcher_env_variable(l->jobs[i]));
        }
    if (!*job)
        name_parent(job, sizeof job);
    snprintf(who->socket, sizeof who->socket, "ctrun-%u-%s", (unsigned)geteuid(), job);
}

/* If the user's host file places the tasks, writes its first host, where task 0 is, and returns 1.
 * Else returns 0. */
static int first_of_hostfile(char *address, size_t size)
{
    const char *how = launcher_env_variable("SLURM_DISTRIBUTION"),
               *path = launcher_env_variable("SLURM_HOSTFILE");
    struct host_list list;
    struct why why;
    int found;

    if (!how || strcmp(how, "arbitrary") != 0 || !path || host_list_read(&list, path, &why) < 0)
        return 0;
    found = snprintf(address, size, "%s", list.hosts[0].name) < (int)size;
    host_list_free(&list);
    return found;
}

/* Finds the node of task 0.  This is the first host of the user's host file, if the file places the
 * tasks, else the first node of the step. */
static ct_status find_slurm_task_0(struct identity *who)
{
    const char *nodes = launcher_env_variable("SLURM_STEP_NODELIST"),
               *node = launcher_env_variable("SLURM_NODEID");

    if (first_of_hostfile(who->address, sizeof who->address))
        return CT_OK;
    if (!nodes || host_list_first(nodes, who->address, sizeof who->address) < 0)
        return ct_fail(CT_ERR_INVALID,
                       "SLURM_STEP_NODELIST=%.100s names no host where rank 0 could be; set "
                       "MASTER_ADDR to rank 0's host and MASTER_PORT to a free port there",
                       nodes ? nodes : "");
    if (who->rank == 0 && node && strcmp(node, "0") != 0)
        return ct_fail(CT_ERR_INVALID,
                       "SLURM_NODEID=%s: rank 0 is not on the first node of the step, %.200s; set "
                       "MASTER_ADDR to rank 0's host and MASTER_PORT to a free port there",
                       node, who->address);
    return CT_OK;
}

static ct_status from_slurm_step(struct identity *who)
{
    const ct_status status = find_slurm_task_0(who);

    who->is_slurm_node = 1;
    who->port = slurm_step_port();
    return status == CT_OK && launcher_env_variable("MASTER_PORT") && !is_step_of_a_worker()
               ? launcher_env_number("MASTER_PORT", 1, 65535, &who->port)
               : status;
}

static ct_status from_master(struct identity *who)
{
    const struct launcher *l = find_launcher();
    const char *address = is_step_of_a_worker() ? NULL : launcher_env_variable("MASTER_ADDR"),
               *agent = launcher_env_variable("TORCHELASTIC_USE_AGENT_STORE");

    if (address) {
        if (strlen(address) >= sizeof who->address)
            return ct_fail(CT_ERR_INVALID, "MASTER_ADDR is longer than a host name can be");
        snprintf(who->address, sizeof who->address, "%s", address);
        who->agent_store = agent && !strcmp(agent, "True");
        if (!launcher_env_variable("MASTER_PORT"))
            return ct_fail(CT_ERR_INVALID,
                           "MASTER_ADDR is set (%s) but MASTER_PORT is not; give "
                           "all ranks the same free port of that host",
                           address);
        return launcher_env_number("MASTER_PORT", 1, 65535, &who->port);
    }
    if (l && all_on_this_node(l, who) && strcmp(l->name, "env")) {
        name_socket(l, who);
        return CT_OK;
    }
    if (l && !strcmp(l->name, "srun"))
        return from_slurm_step(who);
    if (l && who->launcher == l->name && strcmp(l->name, "env") && launcher_exchange_is_offered()) {
        who->by_launcher = 1;
        return CT_OK;
    }
    return ct_fail(CT_ERR_INVALID,
                   "there are %d ranks but MASTER_ADDR is not set; set MASTER_ADDR "
                   "to rank 0's host and MASTER_PORT to a free port there, or "
                   "start the program with ctrun",
                   who->size);
}

ct_status identity_read(const ct_init_options *options, struct identity *who)
{
    const char *method = options && options->init_method ? options->init_method : "env://";
    ct_status status;

    memset(who, 0, sizeof *who);
    if (launcher_env_variable("CT_GENERATION") && !is_step_of_a_worker())
        snprintf(who->generation, sizeof who->generation, "%s",
                 launcher_env_variable("CT_GENERATION"));
    status = options ? from_options(options, who) : from_environment(who);
    if (status != CT_OK)
        return status;
    if (!strncmp(method, "tcp://", 6)) {
        who->generation[0] = 0; /* the store is at the user's address, not the launcher's */
        return from_url(method, who);
    }
    if (!strncmp(method, "file://", 7)) {
        who->generation[0] = 0;
        return method[7] ? CT_OK
                         : ct_fail(CT_ERR_INVALID, "init_method \"%s\": no path is given", method);
    }
    if (strcmp(method, "env://"))
        return ct_fail(CT_ERR_INVALID,
                       "init_method \"%s\": it must begin with env://, tcp:// or "
                       "file://",
                       method);
    if (who->size == 1 && (!launcher_env_variable("MASTER_ADDR") || is_step_of_a_worker()))
        return CT_OK;
    if (options && options->store)
        return CT_OK;
    return from_master(who);
}
