/* SPDX-License-Identifier: Apache-2.0 */
/* pmix_exchange.h - sends a text from rank 0 to all ranks over PMIx, which Open MPI's mpirun and
 * srun --mpi=pmix offer. */
#ifndef RUNTIME_EXCHANGE_PMIX_EXCHANGE_H
#define RUNTIME_EXCHANGE_PMIX_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

int pmix_is_offered(void); /* returns 1 if the environment has PMIx's variables */
/* Sends rank 0's text to `text` on the other ranks.  All ranks of the job call this function
 * once. */
ct_status pmix_broadcast(int rank, char *text, size_t size, int64_t deadline);

#endif
