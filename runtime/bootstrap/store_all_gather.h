/* SPDX-License-Identifier: Apache-2.0 */
/* store_all_gather.h - an all-gather over the store, for ranks that have no links yet.
 *
 * Every rank sets its value with O(1) requests and bytes.  Only the last rank reads all values, and
 * joins them into one value.  Only the ranks that need all values read the joined value.  If these
 * are only the leaders, the store sends the values of all ranks once to each host. */
#ifndef RUNTIME_BOOTSTRAP_STORE_ALL_GATHER_H
#define RUNTIME_BOOTSTRAP_STORE_ALL_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/util/error.h"

/* Sets `bytes` bytes under the key "<what>/<rank>" and counts the rank.  Does not wait for other
 * ranks. */
ct_status store_all_gather_give(ct_store *store, const char *what, int rank, int size,
                                int64_t deadline, const void *own, size_t bytes);

/* The two halves of store_all_gather_give().  store_all_gather_claim() sets the rank's key and
 * sets *before to NULL.  If the key already has another value, it leaves the key unchanged and sets
 * *before to the key's value, which the caller frees.  store_all_gather_count() counts the rank. */
ct_status store_all_gather_claim(ct_store *store, const char *what, int rank, const void *own,
                                 size_t bytes, void **before, size_t *before_bytes);
ct_status store_all_gather_count(ct_store *store, const char *what, int size, int64_t deadline);

/* The values of all ranks.  Rank i's value is from data + at[i] to data + at[i + 1]. */
struct gathered {
    unsigned char *data;
    size_t *at;   /* [size + 1] offsets in `data` */
    void *memory; /* the malloc'ed memory of `data` and `notice` */
    char *notice; /* the notice that came instead of the values; NULL if the values came */
};

/* Waits until all `size` ranks have set their values, and reads the values.  After 5 s, one of the
 * waiting ranks logs the missing ranks.  Returns CT_ERR_TIMEOUT at the deadline; the error message
 * lists the missing ranks.  Call gathered_free() even after a failure. */
ct_status store_all_gather_take(ct_store *store, const char *what, int rank, int size,
                                int64_t deadline, struct gathered *all);
/* Does the same as store_all_gather_take(), but the notice with number `notices` also ends the
 * wait.  The first notice has number 0. */
ct_status store_all_gather_next(ct_store *store, const char *what, int rank, int size, int notices,
                                int64_t deadline, struct gathered *all);
void gathered_free(struct gathered *all);

/* Sends a notice with the text `text`, which ends the waits of all ranks in
 * store_all_gather_next().  Each of these ranks may then wait again.  Sets *complete to 1 if all
 * values were set before, so that no rank gets the notice, else to 0. */
ct_status store_all_gather_notify(ct_store *store, const char *what, const char *text,
                                  int *complete);

/* Returns CT_OK if all ranks have set their values, else CT_ERR_TIMEOUT with an error message that
 * lists the missing ranks.  `start`, in ms of clock_ms(), is the time since which the caller has
 * waited elsewhere. */
ct_status store_all_gather_late(ct_store *store, const char *what, int size, int64_t start);

#endif
