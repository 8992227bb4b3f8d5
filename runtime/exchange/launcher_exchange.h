/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_exchange.h - finds rank 0's store for the ranks of mpirun or mpiexec on several hosts,
 * if MASTER_ADDR is not set. */
#ifndef RUNTIME_EXCHANGE_LAUNCHER_EXCHANGE_H
#define RUNTIME_EXCHANGE_LAUNCHER_EXCHANGE_H

#include "runtime/net/shared_secret.h"

/* Where rank 0 serves the store, at every init of this process.  All fields are 0 before the first
 * init. */
struct launcher_meeting {
    char address[64];     /* the address at which this rank reaches rank 0 */
    int port;             /* 0 before the first init */
    int listener;         /* rank 0's socket, bound to the port; -1 once an init uses it */
    struct secret secret; /* protects the store; the same on all ranks */
};

/* Returns 1 if, according to the environment, the launcher can send a text from rank 0 to all
 * ranks. */
int launcher_exchange_is_offered(void);
/* Fills in *meeting.  All ranks call this function at each init.  Only the first call uses the
 * launcher. */
ct_status launcher_meet(struct launcher_meeting *meeting, int rank, int64_t deadline);

#endif
