/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_exchange.h - how the ranks of mpirun or mpiexec on several hosts find rank 0's store,
 * where no MASTER_ADDR is set. */
#ifndef RUNTIME_EXCHANGE_LAUNCHER_EXCHANGE_H
#define RUNTIME_EXCHANGE_LAUNCHER_EXCHANGE_H

#include "runtime/net/shared_secret.h"

/* Where rank 0 serves the store of each init of this process.  Zeroed: not known yet. */
struct launcher_meeting {
    char address[64]; /* the address at which this rank reaches rank 0 */
    int port;         /* 0: not known yet */
    int listener;     /* on rank 0, for the first init: a socket bound to the port; -1: in use */
    struct secret secret;
};

/* Says, by the environment, whether the launcher can carry a text from rank 0 to all ranks. */
int launcher_exchange_is_offered(void);
/* Finds the meeting.  All ranks call it at each init; only the first call needs the launcher. */
ct_status launcher_meet(struct launcher_meeting *meeting, int rank, int64_t deadline);

#endif
