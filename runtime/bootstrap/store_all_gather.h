/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_BOOTSTRAP_STORE_ALL_GATHER_H
#define RUNTIME_BOOTSTRAP_STORE_ALL_GATHER_H

#include <stdint.h>

#include "runtime/util/error.h"

/* Every rank gives `bytes` bytes under "<what>/<rank>" and gets all of them, rank-major.
 * After 5 s rank 0's warning (rank 1's if that is missing), at the deadline CT_ERR_TIMEOUT, name
 * the ranks that are missing. */
ct_status meet(ct_store *store, const char *what, int rank, int size, const void *mine,
               size_t bytes, void *all, int64_t deadline);

#endif
