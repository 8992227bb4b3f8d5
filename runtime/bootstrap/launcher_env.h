/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_env.h - reads a process's rank, size and store address from the launcher's environment
 * variables. */
#ifndef RUNTIME_BOOTSTRAP_LAUNCHER_ENV_H
#define RUNTIME_BOOTSTRAP_LAUNCHER_ENV_H

#include "runtime/util/error.h"

struct launcher_meeting; /* launcher_exchange.h */

struct identity {
    /* "env" (torchrun or ctrun), "mpirun", "mpiexec", "srun", "alone" or "arguments". */
    const char *launcher;
    int rank, size;
    int local_rank, local_size; /* local_size is 0 if unknown */
    char address[256];          /* MASTER_ADDR; "" if not set */
    int port;                   /* MASTER_PORT */
    /* Name of an abstract unix socket of the store; "" if there is an address or if some ranks may
     * be on other nodes. */
    char socket[108];
    int is_slurm_node; /* 1 if `address` is Slurm's name of a node, which may not resolve */
    int by_launcher;   /* 1 if the ranks find rank 0 by the launcher's exchange */
    /* The result of the exchange, which init_process_group.c fills in; NULL without an exchange. */
    struct launcher_meeting *meeting;
    /* 1 if the launcher serves the store at MASTER_ADDR, so that every rank is a client.
     * TORCHELASTIC_USE_AGENT_STORE is then True. */
    int agent_store;
    /* CT_GENERATION, which is the same on all nodes and new in each round; "" without ctrun. */
    char generation[64];
};

/* Reads the identity of this process.  Options, if not NULL, take precedence over the environment.
 * Returns CT_ERR_INVALID for a wrong variable.  The error message names the variable, its value and
 * the allowed values. */
ct_status identity_read(const ct_init_options *options, struct identity *identity);

#endif
