/* SPDX-License-Identifier: Apache-2.0 */
/* store_all_gather.h - an all-gather over the store, for ranks that have no links yet.
 *
 * Every rank gives its value with O(1) requests and bytes.  Only the last rank reads all values and
 * joins them into one.  Only the ranks that need all values take the joined value, so one rank per
 * host loads the store with bytes for all ranks. */
#ifndef RUNTIME_BOOTSTRAP_STORE_ALL_GATHER_H
#define RUNTIME_BOOTSTRAP_STORE_ALL_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* Sets `bytes` bytes under the key "<what>/<rank>" and counts the rank.  Does not wait for other
 * ranks. */
ct_status store_all_gather_give(ct_store *store, const char *what, int rank, int size,
                                int64_t deadline, const void *own, size_t bytes);

/* The two halves of store_all_gather_give().  *before: the value that the key had already,
 * malloc'ed, and nothing was set; NULL: the value was set. */
ct_status store_all_gather_claim(ct_store *store, const char *what, int rank, const void *own,
                                 size_t bytes, void **before, size_t *before_bytes);
ct_status store_all_gather_count(ct_store *store, const char *what, int size, int64_t deadline);

/* The values of all ranks.  Rank i's value is from data + at[i] to data + at[i + 1]. */
struct gathered {
    unsigned char *data;
    size_t *at; /* [size + 1] */
    void *memory;
    char *notice; /* a notice that came instead, in ->memory; else NULL */
};

/* Waits until all `size` ranks have given, and gets their values; call gathered_free() even after a
 * failure.  After 5 s, one waiting rank logs the missing ranks.  At the deadline, CT_ERR_TIMEOUT
 * names them. */
ct_status store_all_gather_take(ct_store *store, const char *what, int rank, int size,
                                int64_t deadline, struct gathered *all);
/* Does the same, but notice number `notices` (the first is 0) also ends the wait. */
ct_status store_all_gather_next(ct_store *store, const char *what, int rank, int size, int notices,
                                int64_t deadline, struct gathered *all);
void gathered_free(struct gathered *all);

/* Ends the waits of all ranks that take.  Each rank gets the text and may take again.  *complete 1:
 * all values were set before, so the ranks do not get the text. */
ct_status store_all_gather_notify(ct_store *store, const char *what, const char *text,
                                  int *complete);

/* Looks for missing ranks, for a rank that has waited elsewhere since `start` (clock_ms()).
 * CT_ERR_TIMEOUT names the ranks that have not given; CT_OK: all have. */
ct_status store_all_gather_late(ct_store *store, const char *what, int size, int64_t start);

#endif
