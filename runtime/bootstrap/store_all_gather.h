/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_BOOTSTRAP_STORE_ALL_GATHER_H
#define RUNTIME_BOOTSTRAP_STORE_ALL_GATHER_H

#include <stdint.h>

#include "runtime/util/error.h"

/* Every rank sets `bytes` bytes under the key "<what>/<rank>" and gets those of all ranks, in order
 * of ranks.  After 5 s rank 0 (rank 1 if rank 0 is missing) warns and names the missing ranks; at
 * the deadline CT_ERR_TIMEOUT names them. */
ct_status store_all_gather(ct_store *store, const char *what, int rank, int size, const void *own,
                           size_t bytes, void *all, int64_t deadline);

#endif
