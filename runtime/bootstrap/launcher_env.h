/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_env.h - rank, size and store address, as the launcher set them in the environment. */
#ifndef RUNTIME_BOOTSTRAP_LAUNCHER_ENV_H
#define RUNTIME_BOOTSTRAP_LAUNCHER_ENV_H

#include "runtime/util/error.h"

struct launcher_meeting; /* launcher_exchange.h */

struct identity {
    const char
        *launcher; /* "env" (torchrun, ctrun), "mpirun", "mpiexec", "srun", "alone", "arguments" */
    int rank, size;
    int local_rank, local_size; /* local_size 0: unknown */
    char address[256];          /* MASTER_ADDR; "": none given */
    int port;                   /* MASTER_PORT */
    char socket[108];  /* if there is no address and all ranks are on this node: an abstract unix
                          socket */
    int is_slurm_node; /* address is Slurm's name of a node, which may not resolve */
    int by_launcher; /* without address and socket: the launcher's exchange says where rank 0 is */
    struct launcher_meeting
        *meeting;    /* the exchange's answer, which init_process_group.c fills in; else NULL */
    int agent_store; /* the launcher serves the store (TORCHELASTIC_USE_AGENT_STORE and MASTER_*
                        are those of the environment): every rank is a client */
    char
        generation[64]; /* CT_GENERATION: equal on all nodes, new in each round; "" without ctrun */
};

/* Reads the identity.  Options, if not NULL, take precedence over the environment.  CT_ERR_INVALID
 * names the variable, its value and what it must be. */
ct_status identity_read(const ct_init_options *options, struct identity *identity);

#endif
