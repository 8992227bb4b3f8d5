/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_exchange.h - a text from rank 0 to all ranks of a launcher that speaks PMI-1 (hydra: MPICH,
 * Intel MPI, MVAPICH). */
#ifndef RUNTIME_EXCHANGE_PMI_EXCHANGE_H
#define RUNTIME_EXCHANGE_PMI_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

int pmi_is_offered(void); /* by the environment */
/* All ranks of the job call it, once in a process: the launcher closes the connection at the end.
 * text, without spaces: on rank 0 what all get, on the others the place for it. */
ct_status pmi_broadcast(int rank, char *text, size_t size, int64_t deadline);

#endif
