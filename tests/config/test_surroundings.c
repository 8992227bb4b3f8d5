/* SPDX-License-Identifier: Apache-2.0 */
/* test_surroundings.c - what each scheduler or launcher sets on a node, and what ctrun makes of it.
 *
 * Each environment is written as its controller writes it.  Lines stand for nodes of one job:
 * "NAME=VALUE NAME=VALUE ...", and '+' in a value stands for a line's end. */
#include "tests/harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/rendezvous_options.h"
#include "config/surroundings.h"

extern char **environ;

static struct options options;
static char error[1024];

static void environment(const char *line)
{
    char text[1024];

    clearenv();
    setenv("PATH", "/bin", 1);
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');

        assert_non_null(value);
        *value++ = 0;
        for (char *c = value; *c; c++)
            *c = *c == '+' ? '\n' : *c;
        setenv(word, value, 1);
    }
}

/* The outcome of ctrun's words there, with what main() decides next. */
static enum outcome start(const char *env, const char *words)
{
    static char text[512], *argv[32];
    struct meeting meeting;
    enum outcome outcome;
    int argc = 0;

    options_free(&options);
    environment(env);
    *error = 0;
    snprintf(text, sizeof text, "ctrun %s x", words);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    outcome = options_read(&options, argv, error, sizeof error);
    return outcome == OPTIONS_RUN ? options_meeting(&options, &meeting, error, sizeof error)
                                  : outcome;
}

/* nnodes/node-rank/master-addr:master-port/rdzv-id/nproc-per-node; "-" is no value. */
static void gives(const char *env, const char *words, const char *expected)
{
    static const enum option shown[] = { OPTION_NODE_RANK, OPTION_MASTER_ADDR, OPTION_MASTER_PORT,
                                         OPTION_RDZV_ID, OPTION_NPROC_PER_NODE };
    static const char *const before[] = { "/", "/", ":", "/", "/" };
    char got[1200] = "";

    if (start(env, words) != OPTIONS_RUN)
        fail_msg("%s: ctrun %s: %s", env, words, error);
    snprintf(got, sizeof got, "%d", options.nnodes.max);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const char *value = options.settings[shown[i]].text;

        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", before[i],
                 value ? value : "-");
    }
    if (strcmp(got, expected) != 0)
        fail_msg("%s: ctrun %s: %s instead of %s", env, words, got, expected);
}

static void refuses(const char *env, const char *words, const char *sentence)
{
    if (start(env, words) != OPTIONS_WRONG)
        fail_msg("%s: ctrun %s is not refused", env, words);
    if (!strstr(error, sentence))
        fail_msg("%s: ctrun %s: '%s' does not say '%s'", env, words, error, sentence);
}

static const char *source(enum option option)
{
    static char text[300];

    setting_source(&options, option, text, sizeof text);
    return text;
}

/* ---- Slurm ------------------------------------------------------------------------ */

#define STEP                                                                                       \
    "SLURM_JOB_ID=71 SLURM_JOB_NUM_NODES=4 SLURM_NNODES=2 SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES=2 " \
    "SLURM_STEP_NODELIST=rack1n[007-008] SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 "

static void a_step_of_one_task_a_node_is_one_job(void **state)
{
    char port[16], expected[100];

    (void)state;
    assert_int_equal(start(STEP "SLURM_NODEID=0", ""), OPTIONS_RUN);
    snprintf(port, sizeof port, "%s", options.settings[OPTION_MASTER_PORT].text);
    assert_in_range(atoi(port), 20480, 28671);
    snprintf(expected, sizeof expected, "2/1/rack1n007:%s/slurm-71.0/1", port);
    gives(STEP "SLURM_NODEID=1", "", expected); /* the step's nodes, fewer than the allocation's */
    assert_string_equal(source(OPTION_NNODES), "SLURM_STEP_NUM_NODES");
    assert_string_equal(source(OPTION_NODE_RANK), "SLURM_NODEID");
    assert_string_equal(source(OPTION_MASTER_ADDR), "SLURM_STEP_NODELIST");
    assert_string_equal(options.settings[OPTION_NNODES].set_by, "srun");
    assert_null(options.settings[OPTION_BIND].set_by);
}

static void a_ctrun_that_ctrun_started_by_srun_has_the_tasks_of_its_node(void **state)
{
    (void)state;
    assert_int_equal(start(STEP "SLURM_NODEID=0 CT_SLOTS=3,1", ""), OPTIONS_RUN);
    assert_string_equal(options.settings[OPTION_NPROC_PER_NODE].text, "3");
    assert_int_equal(start(STEP "SLURM_NODEID=1 CT_SLOTS=3,1", ""), OPTIONS_RUN);
    assert_string_equal(options.settings[OPTION_NPROC_PER_NODE].text, "1");
    assert_int_equal(start(STEP "SLURM_NODEID=1 CT_SLOTS=2(x2)", ""), OPTIONS_RUN);
    assert_string_equal(options.settings[OPTION_NPROC_PER_NODE].text, "2");
    assert_int_equal(start(STEP "SLURM_NODEID=1 CT_SLOTS=", ""), OPTIONS_RUN);
    assert_string_equal(options.settings[OPTION_NPROC_PER_NODE].text, "1");
}

static void explicit_options_win_and_one_node_needs_nothing(void **state)
{
    (void)state;
    gives(STEP "SLURM_NODEID=1", "--standalone", "1/0/-:0/none/1");
    gives(STEP "SLURM_NODEID=1", "--nnodes=1", "1/0/-:0/none/1");
    gives(STEP "SLURM_NODEID=1 TORCHELASTIC_RUN_ID=x", "", "1/0/-:0/none/1");
    gives(STEP "SLURM_NODEID=1",
          "--nnodes=2 --node-rank=0 --master-addr=a --master-port=4 --rdzv-id=j", "2/0/a:4/j/1");
    gives(STEP "SLURM_NODEID=1 PET_NODE_RANK=0 PET_MASTER_ADDR=a PET_MASTER_PORT=4", "--rdzv-id=j",
          "2/0/a:4/j/1");
    gives(STEP "SLURM_NODEID=1", /* two of these four are in another step */
          "--nnodes=4 --node-rank=2 --master-addr=a", "4/2/a:0/none/1");
}

static void other_nnodes_than_the_steps_are_refused(void **state)
{
    (void)state;
    refuses(STEP "SLURM_NODEID=1", "--nnodes=3",
            "--nnodes=3, but srun started ctrun on 2 nodes (SLURM_STEP_NUM_NODES=2)");
    refuses(STEP "SLURM_NODEID=1 PET_NNODES=3", "",
            "PET_NNODES=3, but srun started ctrun on 2 nodes");
    assert_int_equal(start(STEP "SLURM_NODEID=1", "--nnodes=1:2"), OPTIONS_RUN);
}

static void an_elastic_job_in_a_step_meets_at_its_first_node(void **state)
{
    char expected[64];

    (void)state;
    assert_int_equal(start(STEP "SLURM_NODEID=1", ""), OPTIONS_RUN);
    snprintf(expected, sizeof expected, "rack1n007:%s", options.settings[OPTION_MASTER_PORT].text);
    assert_int_equal(start(STEP "SLURM_NODEID=1", "--nnodes=1:2 --rdzv-backend=c10d"), OPTIONS_RUN);
    assert_string_equal(options.settings[OPTION_RDZV_ENDPOINT].text, expected);
    assert_string_equal(options.settings[OPTION_NODE_RANK].text, "0"); /* c10d numbers the nodes */
}

static void several_tasks_on_a_node_are_refused_with_what_to_write(void **state)
{
    (void)state;
    refuses(STEP "SLURM_NODEID=1 SLURM_STEP_NUM_TASKS=4", "",
            "srun started ctrun as 4 tasks on 2 nodes");
    refuses("FLUX_JOB_ID=f2 FLUX_JOB_SIZE=4 FLUX_JOB_NNODES=2 FLUX_TASK_RANK=0", "",
            "flux run --tasks-per-node=1 ctrun");
    refuses("OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_LOCAL_SIZE=2", "",
            "mpirun started ctrun as 2 tasks on 1 node");
    refuses("PMI_SIZE=4 PMI_RANK=2 MPI_LOCALNRANKS=2 MPI_LOCALRANKID=0", "",
            "mpiexec -ppn 1 ctrun");
}

static void a_batch_script_starts_srun(void **state)
{
    static const char batch[] = "SLURM_JOB_ID=71 SLURM_JOB_NUM_NODES=2 SLURM_NNODES=2 "
                                "SLURM_NODEID=0 SLURM_PROCID=0 SLURM_TASKS_PER_NODE=4(x2) ";
    char with_tasks[300], one[300];

    (void)state;
    snprintf(with_tasks, sizeof with_tasks, "%sSLURM_NTASKS=8", batch);
    snprintf(one, sizeof one, "%s SLURM_JOB_NUM_NODES=1 SLURM_NTASKS=4", batch);
    gives(batch, "", "1/0/-:0/none/1");
    assert_int_equal(options.surroundings.srun_nodes, 2);
    gives(batch, "--nnodes=1", "1/0/-:0/none/1");
    assert_int_equal(options.surroundings.srun_nodes, 0);
    gives(with_tasks, "--nnodes=1", "1/0/-:0/none/4");
    gives(one, "", "1/0/-:0/none/4");
    gives("SLURM_JOB_ID=71 SLURM_JOB_NUM_NODES=1 SLURM_TASKS_PER_NODE=16", "",
          "1/0/-:0/none/1"); /* 16 processors, and no word of tasks */
    refuses(batch, "--nnodes=3", "--nnodes=3: the Slurm job 71 has 2 nodes");
}

/* ---- Kubernetes ------------------------------------------------------------------- */

static void a_leader_worker_set_is_one_job(void **state)
{
    static const char of_pod[] = "LWS_LEADER_ADDRESS=train-0.train.default LWS_GROUP_SIZE=3 "
                                 "LWS_WORKER_INDEX=";
    char leader[200], last[200], wrong[200];

    (void)state;
    snprintf(leader, sizeof leader, "%s0", of_pod);
    snprintf(last, sizeof last, "%s2", of_pod);
    snprintf(wrong, sizeof wrong, "%s3", of_pod);
    gives(leader, "", "3/0/train-0.train.default:0/none/1");
    gives(last, "--nproc-per-node=4", "3/2/train-0.train.default:0/none/4");
    assert_string_equal(source(OPTION_NODE_RANK), "LWS_WORKER_INDEX");
    refuses(wrong, "", "LWS_WORKER_INDEX=3: with --nnodes=3 the nodes are 0 to 2");
    gives("LWS_LEADER_ADDRESS=a LWS_GROUP_SIZE=1 LWS_WORKER_INDEX=0", "", "1/0/-:0/none/1");
}

/* As pkg/runtime/framework/plugins/torch/torch.go of the Trainer writes them; the Job controller
 * adds the index.  A PyTorchJob of an elastic policy has c10d's. */
static void a_kubeflow_train_job_says_all_by_pet_variables(void **state)
{
    (void)state;
    gives("PET_NNODES=2 PET_NPROC_PER_NODE=4 PET_NODE_RANK=1 PET_MASTER_ADDR=train-node-0-0.train "
          "PET_MASTER_PORT=29500 JOB_COMPLETION_INDEX=1 KUBERNETES_SERVICE_HOST=10.96.0.1",
          "", "2/1/train-node-0-0.train:29500/none/4");
    assert_string_equal(source(OPTION_NODE_RANK), "PET_NODE_RANK");
    assert_null(options.settings[OPTION_NODE_RANK].set_by);
    assert_int_equal(start("PET_NNODES=2 PET_NPROC_PER_NODE=auto PET_NODE_RANK=0 "
                           "PET_MASTER_ADDR=t PET_MASTER_PORT=29500 JOB_COMPLETION_INDEX=0",
                           ""),
                     OPTIONS_RUN);
    assert_int_equal(start("PET_NNODES=1:3 PET_RDZV_BACKEND=c10d PET_MAX_RESTARTS=3 "
                           "PET_RDZV_ENDPOINT=elastic-worker-0:23456 PYTHONUNBUFFERED=0",
                           ""),
                     OPTIONS_RUN);
    assert_string_equal(options.rdzv_endpoint, "elastic-worker-0:23456");
    refuses("PET_NNODES=2 PET_NODE_RANK=2 PET_MASTER_ADDR=t PET_MASTER_PORT=29500", "",
            "PET_NODE_RANK=2: with --nnodes=2 the nodes are 0 to 1");
}

/* The first operator's: torchrun's names for workers, but one a pod. */
static void a_pytorchjob_without_pet_variables_is_one_job(void **state)
{
    char host[256] = "", expected[400];
#define V1 "KUBERNETES_SERVICE_HOST=10.96.0.1 PYTHONUNBUFFERED=0 MASTER_PORT=23456 WORLD_SIZE=2 "

    (void)state;
    gives(V1 "MASTER_ADDR=train-master-0 RANK=1", "", "2/1/train-master-0:23456/none/1");
    assert_string_equal(source(OPTION_NNODES), "WORLD_SIZE");
    gethostname(host, sizeof host - 1);
    snprintf(expected, sizeof expected, "2/0/%s:23456/none/1", host);
    gives(V1 "MASTER_ADDR=localhost RANK=0", "", expected); /* for others this is no address */
    gives("MASTER_ADDR=a MASTER_PORT=1 WORLD_SIZE=2 RANK=1", "", "1/0/-:0/none/1");
    gives(V1 "MASTER_ADDR=a RANK=1 PET_NNODES=1 PET_NODE_RANK=0", "", "1/0/-:0/none/1");
    refuses(V1 "MASTER_ADDR=a RANK=2", "", "RANK=2: with --nnodes=2 the nodes are 0 to 1");
}

/* The host's name is this machine's: tests/e2e/clusters/slurm.sh has pods. */
static void a_kubernetes_job_counts_only_with_nnodes(void **state)
{
    (void)state;
    gives("JOB_COMPLETION_INDEX=3", "", "1/0/-:0/none/1");
    gives("JOB_COMPLETION_INDEX=3 PET_NNODES=1", "", "1/0/-:0/none/1");
    gives("JOB_COMPLETION_INDEX=3 PET_NNODES=4 PET_MASTER_ADDR=train-0.workers", "",
          "4/3/train-0.workers:0/none/1");
    assert_string_equal(options.settings[OPTION_NODE_RANK].set_by, "a Kubernetes Job");
    refuses("JOB_COMPLETION_INDEX=3 PET_NNODES=4", "",
            "JOB_COMPLETION_INDEX=3 on host"); /* which does not end in -3 */
    refuses("JOB_COMPLETION_INDEX=4 PET_NNODES=4 PET_MASTER_ADDR=a", "",
            "JOB_COMPLETION_INDEX=4: with --nnodes=4 the nodes are 0 to 3");
    refuses("JOB_COMPLETION_INDEX=x PET_NNODES=4 PET_MASTER_ADDR=a", "",
            "JOB_COMPLETION_INDEX=x: a Kubernetes Job should set it to this node's number");
}

/* ---- Clouds ----------------------------------------------------------------------- */

static void skypilot_lists_the_nodes(void **state)
{
    static const char nodes[] = "SKYPILOT_NODE_IPS=10.0.0.4+10.0.0.5 SKYPILOT_NUM_NODES=2 "
                                "SKYPILOT_TASK_ID=sky-2026-01-02-03-04-05-678901_train_1 "
                                "SKYPILOT_NODE_RANK=1 ";
    char gpus[300], wrong[300];

    (void)state;
    gives(nodes, "", "2/1/10.0.0.4:0/sky-2026-01-02-03-04-05-678901_train_1/1");
    snprintf(gpus, sizeof gpus, "%sSKYPILOT_NUM_GPUS_PER_NODE=8", nodes);
    gives(gpus, "", "2/1/10.0.0.4:0/sky-2026-01-02-03-04-05-678901_train_1/8");
    assert_string_equal(source(OPTION_NPROC_PER_NODE), "SKYPILOT_NUM_GPUS_PER_NODE");
    snprintf(gpus, sizeof gpus, "%sSKYPILOT_NUM_GPUS_PER_NODE=0", nodes);
    gives(gpus, "", "2/1/10.0.0.4:0/sky-2026-01-02-03-04-05-678901_train_1/1");
    snprintf(wrong, sizeof wrong, "%s SKYPILOT_NUM_GPUS_PER_NODE=many", nodes);
    refuses(wrong, "", "SKYPILOT_NUM_GPUS_PER_NODE");
    refuses("SKYPILOT_NODE_RANK=1 SKYPILOT_NUM_NODES=2", "",
            "SkyPilot started ctrun on 2 nodes, but SKYPILOT_NODE_IPS on host");
}

/* Each node has its number behind the job's id, and only child nodes know the main one's address.
 */
static void aws_batch_counts_from_the_main_node(void **state)
{
    char main_node[200];

    (void)state;
#define OF_3 "AWS_BATCH_JOB_NUM_NODES=3 AWS_BATCH_JOB_MAIN_NODE_INDEX=1 "
#define MAIN "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS=10.0.0.9 "
    gives(OF_3 MAIN "AWS_BATCH_JOB_NODE_INDEX=2 AWS_BATCH_JOB_ID=7f-a1#2", "",
          "3/1/10.0.0.9:0/7f-a1/1");
    gives(OF_3 MAIN "AWS_BATCH_JOB_NODE_INDEX=0 AWS_BATCH_JOB_ID=7f-a1#0", "",
          "3/2/10.0.0.9:0/7f-a1/1");
    assert_string_equal(source(OPTION_MASTER_ADDR), "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS");
    if (start(OF_3 "AWS_BATCH_JOB_NODE_INDEX=1 AWS_BATCH_JOB_ID=7f-a1#1", "") == OPTIONS_RUN) {
        assert_string_equal(options.settings[OPTION_NODE_RANK].text, "0");
        assert_string_equal(options.settings[OPTION_RDZV_ID].text, "7f-a1");
        assert_string_equal(source(OPTION_MASTER_ADDR), "AWS_BATCH_JOB_MAIN_NODE_INDEX");
    } else { /* a machine without a network */
        assert_non_null(strstr(error, "does not say where node 0 is"));
    }
    snprintf(main_node, sizeof main_node, "%sAWS_BATCH_JOB_NODE_INDEX=1", OF_3);
    gives(main_node, "--master-addr=10.0.0.9", "3/0/10.0.0.9:0/none/1");
    refuses(OF_3 "AWS_BATCH_JOB_NODE_INDEX=2", "",
            "AWS_BATCH_JOB_MAIN_NODE_INDEX=1 on host"); /* which is not the main node */
    refuses(OF_3 MAIN "AWS_BATCH_JOB_NODE_INDEX=3", "",
            "AWS_BATCH_JOB_NODE_INDEX=3: AWS Batch should set it to this node's number");
}

/* ---- Lists of nodes, and MPI ------------------------------------------------------- */

static void node_files_are_host_files(void **state)
{
    (void)state;
    gives("PBS_NODEFILE=/var/spool/pbs/aux/71.server PBS_JOBID=71.server", "", "1/0/-:0/none/1");
    assert_string_equal(options.hostfile, "/var/spool/pbs/aux/71.server");
    assert_string_equal(source(OPTION_HOSTFILE), "PBS_NODEFILE");
    assert_string_equal(options.ssh, "ssh");
    gives("LSB_DJOB_HOSTFILE=/home/u/.lsbatch/71.hostfile LSB_JOBID=71 LSB_MCPU_HOSTS=a", "",
          "1/0/-:0/none/1");
    assert_string_equal(options.hostfile, "/home/u/.lsbatch/71.hostfile");
    assert_string_equal(options.ssh, "blaunch");
    gives("PE_HOSTFILE=/var/spool/gridengine/h/active_jobs/7.1/pe_hostfile JOB_ID=7", "",
          "1/0/-:0/none/1");
    assert_string_equal(options.ssh, "qrsh -inherit");
    gives("PBS_NODEFILE=/n", "--nnodes=2 --node-rank=1 --master-addr=a", "2/1/a:0/none/1");
    assert_null(options.hostfile);
    gives("PBS_NODEFILE=/n", "--standalone", "1/0/-:0/none/1");
    assert_null(options.hostfile);
    gives("PBS_NODEFILE=/n", "--hosts=a,b", "1/0/-:0/none/1");
    assert_null(options.hostfile);
    gives("PBS_NODEFILE=/n", "--ssh=ssh", "1/0/-:0/none/1");
    assert_string_equal(options.ssh, "ssh");
}

static void a_host_of_a_job_by_ssh_knows_its_place(void **state)
{
    (void)state;
    gives("CT_HOSTS_NODE=3+1+a.example+4000+2+hosts-1f+-1+2 TORCHELASTIC_RUN_ID=outer",
          "--hosts=a,b", "3/1/a.example:4000/hosts-1f/2");
    assert_int_equal(options.surroundings.terminals, 2);
    assert_int_equal(options.surroundings.port_fd, 0);
    gives("CT_HOSTS_NODE=3+0+a+0+0+id+7+0", "--nproc-per-node=4", "3/0/a:0/id/4");
    assert_int_equal(options.surroundings.port_fd, 7);
    refuses("CT_HOSTS_NODE=3+3+a+0+0+id+7+0", "", "ctrun --hosts sets it");
    refuses("CT_HOSTS_NODE=3+1+a+0+0+id+7", "", "unset it");
}

static void mpi_launchers_and_flux_number_the_nodes_but_name_no_host(void **state)
{
    static const char *const two[] = {
        "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=1",
        "PMI_SIZE=2 PMI_RANK=1 MPI_LOCALNRANKS=1 MPI_LOCALRANKID=0",
        "FLUX_JOB_ID=f2Bg7 FLUX_JOB_SIZE=2 FLUX_JOB_NNODES=2 FLUX_TASK_RANK=1"
    };

    (void)state;
    for (int i = 0; i < 3; i++) {
        gives(two[i], "--master-addr=a", i < 2 ? "2/1/a:0/none/1" : "2/1/a:0/f2Bg7/1");
        gives(two[i], "", i < 2 ? "2/1/-:0/none/1" : "2/1/-:0/f2Bg7/1");
        assert_non_null(options.surroundings.exchange_of); /* PMIx or PMI says where */
        refuses(two[i], "--master-port=4000", "do not say where node 0 is: add --master-addr=HOST");
        gives(two[i], "--nnodes=1", "1/0/-:0/none/1");
    }
    gives("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=1 "
          "SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 PBS_NODEFILE=/n",
          "", "2/1/-:0/none/1"); /* mpirun started it, in a batch job */
    assert_int_equal(options.surroundings.srun_nodes, 0);
}

/* ---- Mistakes ---------------------------------------------------------------------- */

static void a_wrong_value_is_named_with_its_variable(void **state)
{
    (void)state;
    refuses("LWS_LEADER_ADDRESS=a LWS_GROUP_SIZE=three LWS_WORKER_INDEX=0", "",
            "LWS_GROUP_SIZE=three: LeaderWorkerSet should set it to the number of nodes; "
            "give --nnodes=N, or --standalone for a job on this node alone");
    refuses("LWS_LEADER_ADDRESS=a LWS_GROUP_SIZE=0 LWS_WORKER_INDEX=0", "", "LWS_GROUP_SIZE=0: ");
    refuses("LWS_LEADER_ADDRESS=a LWS_GROUP_SIZE= LWS_WORKER_INDEX=0", "",
            "LWS_GROUP_SIZE is not set: LeaderWorkerSet should set it to the number of nodes");
    refuses("LWS_LEADER_ADDRESS=a LWS_GROUP_SIZE=3 LWS_WORKER_INDEX=-1", "",
            "LWS_WORKER_INDEX=-1: LeaderWorkerSet should set it to this node's number; "
            "give --node-rank=N, or --standalone for a job on this node alone");
    refuses("LWS_LEADER_ADDRESS=a LWS_GROUP_SIZE=3 LWS_WORKER_INDEX=2x", "",
            "LWS_WORKER_INDEX=2x: ");
    refuses("SLURM_JOB_ID=1 SLURM_JOB_NUM_NODES=two", "", "SLURM_JOB_NUM_NODES=two: ");
    refuses(STEP "SLURM_NODEID=9", "", "SLURM_NODEID=9: with --nnodes=2 the nodes are 0 to 1");
    refuses(STEP "SLURM_NODEID=1 SLURM_STEP_NODELIST=a[", "", "SLURM_STEP_NODELIST=a[ on host ");
    refuses("OMPI_COMM_WORLD_RANK=0", "",
            "OMPI_COMM_WORLD_SIZE is not set: mpirun should set it to");
}

static void with_an_option_the_wrong_value_is_not_asked_for(void **state)
{
    (void)state;
    gives("LWS_LEADER_ADDRESS=a LWS_GROUP_SIZE=2 LWS_WORKER_INDEX=?", "--node-rank=1",
          "2/1/a:0/none/1");
    gives("LWS_LEADER_ADDRESS=a LWS_GROUP_SIZE=? LWS_WORKER_INDEX=1", "--standalone",
          "1/0/-:0/none/1");
    gives("LWS_LEADER_ADDRESS=a LWS_GROUP_SIZE=? LWS_WORKER_INDEX=1", "--nnodes=1",
          "1/0/-:0/none/1");
    gives("LWS_LEADER_ADDRESS=a LWS_GROUP_SIZE=? LWS_WORKER_INDEX=1", "--nnodes=2",
          "2/1/a:0/none/1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_of_one_task_a_node_is_one_job),
        cmocka_unit_test(a_ctrun_that_ctrun_started_by_srun_has_the_tasks_of_its_node),
        cmocka_unit_test(explicit_options_win_and_one_node_needs_nothing),
        cmocka_unit_test(other_nnodes_than_the_steps_are_refused),
        cmocka_unit_test(an_elastic_job_in_a_step_meets_at_its_first_node),
        cmocka_unit_test(several_tasks_on_a_node_are_refused_with_what_to_write),
        cmocka_unit_test(a_batch_script_starts_srun),
        cmocka_unit_test(a_leader_worker_set_is_one_job),
        cmocka_unit_test(a_kubeflow_train_job_says_all_by_pet_variables),
        cmocka_unit_test(a_pytorchjob_without_pet_variables_is_one_job),
        cmocka_unit_test(a_kubernetes_job_counts_only_with_nnodes),
        cmocka_unit_test(skypilot_lists_the_nodes),
        cmocka_unit_test(aws_batch_counts_from_the_main_node),
        cmocka_unit_test(node_files_are_host_files),
        cmocka_unit_test(a_host_of_a_job_by_ssh_knows_its_place),
        cmocka_unit_test(mpi_launchers_and_flux_number_the_nodes_but_name_no_host),
        cmocka_unit_test(a_wrong_value_is_named_with_its_variable),
        cmocka_unit_test(with_an_option_the_wrong_value_is_not_asked_for),
    };
    const int null = open("/dev/null", O_RDONLY);

    dup2(null, STDIN_FILENO); /* on a terminal a step is a shell */
    close(null);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
