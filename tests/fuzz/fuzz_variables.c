/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_variables.c - the variables by which a program knows which rank it is, as ctrun, torchrun,
 * mpirun, srun or anybody may have set them, and CT_FAULT.
 *
 * The input is text: an init_method in the first line ("" is none), then variables as
 * NAME=VALUE, one a line; only those that say who we are are set. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bootstrap/launcher_env.h"
#include "runtime/fault/fault_injection.h"
#include "tests/fuzz/input.h"

static const char *const names[] = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_USE_AGENT_STORE",
    "CT_GENERATION",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_MCA_ess_base_jobid",
    "PMIX_NAMESPACE",
    "PMIX_RANK",
    "PMI_FD",
    "PMI_PORT",
    "PMI_ID",
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_LOCALID",
    "SLURM_STEP_ID",
    "SLURM_JOB_ID",
    "SLURM_STEP_NUM_NODES",
    "SLURM_STEP_NODELIST",
    "SLURM_NODEID",
    "SLURM_DISTRIBUTION",
    "SLURM_HOSTFILE",
    "CT_FAULT",
};
enum { NAMES = sizeof names / sizeof *names };

static void set_if_meant(const char *line)
{
    for (int i = 0; i < NAMES; i++) {
        const size_t length = strlen(names[i]);

        if (!strncmp(line, names[i], length) && line[length] == '=')
            setenv(names[i], line + length + 1, 1);
    }
}

static void identify(const ct_init_options *options)
{
    struct identity who;

    if (identity_read(options, &who) != CT_OK) {
        holds(ct_last_error()[0]);
        return;
    }
    holds(who.size >= 1 && who.rank >= 0 && who.rank < who.size);
    holds(who.local_rank >= 0 && who.port >= 0 && who.port <= 65535);
    holds(memchr(who.address, '\0', sizeof who.address)
          && memchr(who.socket, '\0', sizeof who.socket)
          && memchr(who.generation, '\0', sizeof who.generation));
}

/* Read, and nothing goes wrong. */
static void read_faults(void)
{
    for (int rank = 0; rank < 2; rank++) {
        struct faults *faults = NULL;

        holds(faults_from_environment(rank, &faults) == CT_OK || ct_last_error()[0]);
        holds(fault_first_seq(faults) >= 1);
        for (int i = 0; faults && i < faults->count; i++) {
            holds(faults->list[i].operation >= FAULT_ANY
                  && faults->list[i].operation < FAULT_OPERATIONS);
            holds(faults->list[i].argument >= 0);
            holds(faults->list[i].action != FAULT_EXIT || faults->list[i].argument <= 255);
        }
        faults_free(faults);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ct_init_options options = CT_INIT_OPTIONS_INIT;
    char *text = malloc(size + 1), *rest = text, *method;

    holds(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    method = strsep(&rest, "\n");
    while (rest)
        set_if_meant(strsep(&rest, "\n"));
    options.init_method = *method ? method : NULL;
    identify(NULL);
    identify(&options);
    read_faults();
    for (int i = 0; i < NAMES; i++)
        unsetenv(names[i]);
    free(text);
    return 0;
}
