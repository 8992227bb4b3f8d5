/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_exchange.h - carries a text from rank 0 to all ranks of a launcher that speaks PMI-1 (hydra:
 * MPICH, Intel MPI, MVAPICH). */
#ifndef RUNTIME_EXCHANGE_PMI_EXCHANGE_H
#define RUNTIME_EXCHANGE_PMI_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

int pmi_is_offered(void); /* by the environment */
/* Carries rank 0's text, which has no spaces, to `text` on the other ranks.  All ranks call it,
 * once in a process, since the launcher closes the connection at the end. */
ct_status pmi_broadcast(int rank, char *text, size_t size, int64_t deadline);

#endif
