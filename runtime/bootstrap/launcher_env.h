/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_BOOTSTRAP_LAUNCHER_ENV_H
#define RUNTIME_BOOTSTRAP_LAUNCHER_ENV_H

#include "runtime/util/error.h"

/* Who this process is and where the others are met, as its launcher said. */
struct identity {
    const char
        *launcher; /* "env" (torchrun, ctrun), "mpirun", "mpiexec", "srun", "alone", "arguments" */
    int rank, size;
    int local_rank, local_size; /* local_size 0: unknown */
    char address[256];          /* MASTER_ADDR; "": none given */
    int port;                   /* MASTER_PORT */
    char socket[108]; /* no address, but all ranks on this node: the abstract unix socket to meet at
                       */
    int agent_store;  /* the launcher serves the store (TORCHELASTIC_USE_AGENT_STORE and MASTER_*
                         are those of the environment): every rank is a client */
    char generation[64]; /* CT_GENERATION: equal on all nodes, new each round; "" without ctrun */
};

/* Reads options (may be NULL) over the environment.  Whatever is wrong is
 * CT_ERR_INVALID with the variable, its value and what it should be. */
ct_status identity_read(const ct_init_options *options, struct identity *identity);

#endif
