/* SPDX-License-Identifier: Apache-2.0 */
/* store_all_gather.h - an all-gather over the store, for ranks that have no links yet.
 *
 * Every rank gives, in O(1) requests and bytes; only the ranks that need all values take them, so
 * that of each host one rank alone loads the store with as many bytes as there are ranks. */
#ifndef RUNTIME_BOOTSTRAP_STORE_ALL_GATHER_H
#define RUNTIME_BOOTSTRAP_STORE_ALL_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* Sets `bytes` bytes under the key "<what>/<rank>" and counts them.  Does not wait. */
ct_status store_all_gather_give(ct_store *store, const char *what, int rank, int size,
                                const void *own, size_t bytes);

/* Waits until all `size` ranks have given, and gets their values in order of ranks: values[size],
 * malloc'ed, the caller frees them also after a failure (NULL: none).  After 5 s one of the ranks
 * that wait warns and names the missing ones; at the deadline CT_ERR_TIMEOUT names them. */
ct_status store_all_gather_take(ct_store *store, const char *what, int rank, int size,
                                int64_t deadline, void **values, size_t *sizes);

/* For a rank that waits elsewhere, since `start` (clock_ms()): CT_ERR_TIMEOUT names the ranks that
 * have not given; CT_OK: all have. */
ct_status store_all_gather_late(ct_store *store, const char *what, int size, int64_t start);

#endif
