/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_env.h - rank, size and store address, as the launcher set them in the environment. */
#ifndef RUNTIME_BOOTSTRAP_LAUNCHER_ENV_H
#define RUNTIME_BOOTSTRAP_LAUNCHER_ENV_H

#include "runtime/util/error.h"

struct launcher_meeting; /* launcher_exchange.h */

struct identity {
    /* "env" (torchrun, ctrun), "mpirun", "mpiexec", "srun", "alone", "arguments". */
    const char *launcher;
    int rank, size;
    int local_rank, local_size; /* local_size 0: unknown */
    char address[256];          /* MASTER_ADDR; "": none given */
    int port;                   /* MASTER_PORT */
    /* An abstract unix socket, if there is no address and all ranks are on this node. */
    char socket[108];
    int is_slurm_node; /* address is Slurm's name of a node, which may not resolve */
    int by_launcher; /* without address and socket: the launcher's exchange says where rank 0 is */
    /* The exchange's answer, which init_process_group.c fills in; else NULL. */
    struct launcher_meeting *meeting;
    /* The launcher serves the store, so every rank is a client: TORCHELASTIC_USE_AGENT_STORE is
     * set, and MASTER_* are the environment's. */
    int agent_store;
    /* CT_GENERATION: equal on all nodes, new in each round; "" without ctrun. */
    char generation[64];
};

/* Reads the identity.  Options, if not NULL, take precedence over the environment.  CT_ERR_INVALID
 * names the variable, its value and what it must be. */
ct_status identity_read(const ct_init_options *options, struct identity *identity);

#endif
