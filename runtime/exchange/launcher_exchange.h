/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_exchange.h - how the ranks of mpirun or mpiexec on several hosts find rank 0's store,
 * where no MASTER_ADDR is set. */
#ifndef RUNTIME_EXCHANGE_LAUNCHER_EXCHANGE_H
#define RUNTIME_EXCHANGE_LAUNCHER_EXCHANGE_H

#include "runtime/net/shared_secret.h"

/* Where rank 0 serves the store of each init of this process.  Zeroed: it is not known yet. */
struct launcher_meeting {
    char address[64]; /* rank 0's, as this rank reaches it */
    int port;         /* 0: not known yet */
    int listener;     /* on rank 0: bound to the port, for the first init; -1: taken */
    struct secret secret;
};

/* Does what starts us carry a text from rank 0 to all ranks?  By the environment. */
int launcher_exchange_is_offered(void);
/* All ranks call it at their first init; later ones find the meeting as it is. */
ct_status launcher_meet(struct launcher_meeting *meeting, int rank, int64_t deadline);

#endif
