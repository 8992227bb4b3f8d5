/* SPDX-License-Identifier: Apache-2.0 */
/* pmix_exchange.h - carries a text from rank 0 to all ranks of a launcher that offers PMIx (Open
 * MPI's mpirun, srun --mpi=pmix). */
#ifndef RUNTIME_EXCHANGE_PMIX_EXCHANGE_H
#define RUNTIME_EXCHANGE_PMIX_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

int pmix_is_offered(void); /* by the environment */
/* Carries rank 0's text to `text` on the other ranks.  All ranks of the job call it once.
 * */
ct_status pmix_broadcast(int rank, char *text, size_t size, int64_t deadline);

#endif
