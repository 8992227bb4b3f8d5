/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_exchange.h - sends a text from rank 0 to all ranks over PMI-1, the protocol of hydra, which
 * is the launcher of MPICH, Intel MPI and MVAPICH. */
#ifndef RUNTIME_EXCHANGE_PMI_EXCHANGE_H
#define RUNTIME_EXCHANGE_PMI_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

int pmi_is_offered(void); /* returns 1 if the environment has PMI_FD */
/* Sends rank 0's text, which must not contain spaces, to `text` on the other ranks.  All ranks call
 * this function, only once in a process, since the launcher closes the connection at the end. */
ct_status pmi_broadcast(int rank, char *text, size_t size, int64_t deadline);

#endif
