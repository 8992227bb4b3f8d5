/* SPDX-License-Identifier: Apache-2.0 */
/* test_launcher_env.c - each launcher's variables, and each way to get them wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/bootstrap/launcher_env.h"
#include "tests/harness.h"

/* "NAME=value NAME=value": these and no others that launcher_env.c looks at. */
static void environment(const char *assignments)
{
    static char kept[512];

    clearenv();
    strncpy(kept, assignments, sizeof kept - 1);
    for (char *word = strtok(kept, " "); word; word = strtok(NULL, " "))
        putenv(word);
}

static void torchruns_variables_are_read(void **state)
{
    struct identity who;

    (void)state;
    environment(
        "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 MASTER_ADDR=h MASTER_PORT=29500 "
        "TORCHELASTIC_USE_AGENT_STORE=True CT_GENERATION=g OMPI_COMM_WORLD_RANK=");
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(!strcmp(who.launcher, "env") && who.rank == 5 && who.size == 8);
    EXPECT(who.local_rank == 1 && who.local_size == 4 && who.agent_store);
    EXPECT(!strcmp(who.address, "h") && who.port == 29500 && !strcmp(who.generation, "g"));
}

static void without_variables_a_process_is_alone(void **state)
{
    struct identity who;

    (void)state;
    environment("RANK= WORLD_SIZE= SLURM_PROCID=0 SLURM_NTASKS=4"); /* an allocation is no step */
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(!strcmp(who.launcher, "alone") && who.rank == 0 && who.size == 1 && !*who.address);
}

static void ranks_of_one_node_meet_on_a_socket_named_by_the_job(void **state)
{
    struct identity who;
    char other[sizeof who.socket];

    (void)state;
    environment("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 "
                "OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=77");
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(!strcmp(who.launcher, "mpirun") && who.rank == 1 && strstr(who.socket, "-77"));
    setenv("PMIX_NAMESPACE", "prterun-ip-172-31-100-200-4102@1", 1); /* host, pid, number */
    EXPECT_OK(identity_read(NULL, &who));
    snprintf(other, sizeof other, "%s", who.socket);
    setenv("PMIX_NAMESPACE", "prterun-ip-172-31-100-200-4103@1", 1);
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(strcmp(other, who.socket) != 0);
    environment(
        "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=3 SLURM_JOB_ID=9 SLURM_STEP_NUM_NODES=1");
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(!strcmp(who.launcher, "srun") && strstr(who.socket, "-9.3"));
    environment("PMI_RANK=0 PMI_SIZE=2");
    EXPECT_ERROR(identity_read(NULL, &who), CT_ERR_INVALID, "MASTER_ADDR is not set");
}

static void ranks_of_a_slurm_step_meet_on_its_first_node(void **state)
{
    struct identity who;
    int port;

    (void)state;
    environment("SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_STEP_ID=0 SLURM_JOB_ID=71 SLURM_NODEID=1 "
                "SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=rack1n[007-009,12]");
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(!strcmp(who.address, "rack1n007") && who.rank == 3 && !who.agent_store);
    EXPECT(who.port >= 20480 && who.port < 28672);
    port = who.port;
    setenv("SLURM_STEP_ID", "1", 1); /* may run beside step 0, on the same node */
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(who.port != port);
    setenv("MASTER_PORT", "4000", 1);
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(who.port == 4000);
    setenv("MASTER_ADDR", "h", 1);
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(!strcmp(who.address, "h"));
    environment("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=0 SLURM_JOB_ID=71 SLURM_NODEID=1 "
                "SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=a,b");
    EXPECT_ERROR(identity_read(NULL, &who), CT_ERR_INVALID, "SLURM_NODEID=1|first node|a;");
    environment("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=0 SLURM_JOB_ID=71 "
                "SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=a[");
    EXPECT_ERROR(identity_read(NULL, &who), CT_ERR_INVALID, "SLURM_STEP_NODELIST=a[");
}

static void a_task_of_srun_in_a_worker_is_no_rank_of_the_workers_job(void **state)
{
    struct identity who;
    char pid[16];

    (void)state;
    environment("RANK=5 WORLD_SIZE=8 MASTER_ADDR=h MASTER_PORT=1 TORCHELASTIC_RUN_ID=x "
                "CT_GENERATION=g SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=4 SLURM_JOB_ID=9 "
                "SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=a,b");
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("SLURM_TASK_PID", pid, 1);
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(who.rank == 1 && who.size == 2 && !strcmp(who.address, "a") && !*who.generation);
    setenv("SLURM_TASK_PID", "1", 1); /* of ctrun, say, which is the task */
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(who.rank == 5 && who.size == 8 && !strcmp(who.address, "h"));
}

static void on_several_hosts_the_launcher_says_where_rank_0_is(void **state)
{
    struct identity who;

    (void)state;
    environment("PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1 PMI_FD=7");
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(who.by_launcher && who.rank == 1 && !*who.socket && !*who.address);
    environment("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 "
                "OMPI_COMM_WORLD_LOCAL_SIZE=1 PMIX_NAMESPACE=77 PMIX_RANK=1");
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(who.by_launcher && who.rank == 1);
    environment("PMI_RANK=1 PMI_SIZE=2 PMI_FD=7 MASTER_ADDR=h MASTER_PORT=1");
    EXPECT_OK(identity_read(NULL, &who));
    EXPECT(!who.by_launcher && !strcmp(who.address, "h"));
    environment("RANK=0 WORLD_SIZE=2 PMI_FD=7");
    EXPECT_ERROR(identity_read(NULL, &who), CT_ERR_INVALID, "MASTER_ADDR is not set");
    environment("PMI_PORT=h:1 PMI_ID=0");
    EXPECT_ERROR(identity_read(NULL, &who), CT_ERR_INVALID, "without -pmi-port");
}

static void each_wrong_variable_is_named_with_its_value(void **state)
{
    static const char *const wrong[][2] = {
        { "RANK=0", "RANK is set (0) but WORLD_SIZE is not" },
        { "WORLD_SIZE=2", "WORLD_SIZE is set (2) but RANK is not" },
        { "RANK=x WORLD_SIZE=2", "RANK=x: it must be a number" },
        { "RANK=0 WORLD_SIZE=0", "WORLD_SIZE=0: it must be a number from 1" },
        { "RANK=2 WORLD_SIZE=2", "RANK=2, but WORLD_SIZE=2: RANK must be from 0 to 1" },
        { "RANK=0 WORLD_SIZE=2", "MASTER_ADDR is not set" },
        { "RANK=0 WORLD_SIZE=2 MASTER_ADDR=h", "MASTER_PORT is not" },
        { "RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=0", "MASTER_PORT=0: it must be" },
        { "RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=65536", "MASTER_PORT=65536" },
    };
    struct identity who;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        environment(wrong[i][0]);
        EXPECT_ERROR(identity_read(NULL, &who), CT_ERR_INVALID, wrong[i][1]);
    }
}

static void arguments_win_over_the_environment(void **state)
{
    ct_init_options options = CT_INIT_OPTIONS_INIT;
    struct identity who;

    (void)state;
    environment("RANK=0 WORLD_SIZE=8 MASTER_ADDR=h MASTER_PORT=1");
    options.rank = 1, options.world_size = 2, options.init_method = "tcp://[::1]:99";
    EXPECT_OK(identity_read(&options, &who));
    EXPECT(who.rank == 1 && who.size == 2 && !strcmp(who.address, "::1") && who.port == 99);
    options.init_method = "tcp://h:99999";
    EXPECT_ERROR(identity_read(&options, &who), CT_ERR_INVALID, "tcp://h:99999|1 to 65535");
    options.init_method = "http://h";
    EXPECT_ERROR(identity_read(&options, &who), CT_ERR_INVALID, "http://h|must begin with");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torchruns_variables_are_read),
        cmocka_unit_test(without_variables_a_process_is_alone),
        cmocka_unit_test(ranks_of_one_node_meet_on_a_socket_named_by_the_job),
        cmocka_unit_test(ranks_of_a_slurm_step_meet_on_its_first_node),
        cmocka_unit_test(a_task_of_srun_in_a_worker_is_no_rank_of_the_workers_job),
        cmocka_unit_test(on_several_hosts_the_launcher_says_where_rank_0_is),
        cmocka_unit_test(each_wrong_variable_is_named_with_its_value),
        cmocka_unit_test(arguments_win_over_the_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
