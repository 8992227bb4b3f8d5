/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - the interface between the public calls ct_store_* and the kinds of stores.  Each kind
 * has a table of operations (tcp_store.c, file_store.c, local_store.c, wrapped_store.c).  store.c
 * has the public calls and the code that all kinds use. */
#ifndef RUNTIME_STORE_STORE_H
#define RUNTIME_STORE_STORE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/store/engine/value.h"
#include "runtime/util/error.h"

struct faults; /* fault_injection.h */

/* The operations of a kind.  Several threads may call them at once.  A key may contain any bytes.
 * Values that an operation returns are malloc'ed, and the caller frees them (ct.h). */
struct store_ops {
    const char *kind; /* "tcp", "file", "hash", "wrapped" */
    ct_status (*set)(ct_store *store, struct bytes key, struct bytes value);
    ct_status (*get)(ct_store *store, struct bytes key, int64_t deadline, void **value,
                     size_t *bytes);
    ct_status (*add)(ct_store *store, struct bytes key, int64_t delta, int64_t *result);
    ct_status (*wait)(ct_store *store, const struct bytes *keys, int count, int64_t deadline);
    ct_status (*check)(ct_store *store, const struct bytes *keys, int count, int *present);
    /* Sets present[i] to 1 if keys[i] exists, in one round trip. */
    ct_status (*check_each)(ct_store *store, const struct bytes *keys, int count, char *present);
    ct_status (*compare_set)(ct_store *store, struct bytes key, struct bytes expected,
                             struct bytes desired, void **value, size_t *bytes);
    ct_status (*delete_key)(ct_store *store, struct bytes key, int *deleted);
    ct_status (*num_keys)(ct_store *store, int64_t *count);
    ct_status (*append)(ct_store *store, struct bytes key, struct bytes value);
    ct_status (*multi_get)(ct_store *store, const struct bytes *keys, int count, int64_t deadline,
                           void **values, size_t *sizes);
    ct_status (*multi_set)(ct_store *store, const struct bytes *keys, int count,
                           const struct bytes *values);
    ct_status (*queue_push)(ct_store *store, struct bytes key, struct bytes value);
    ct_status (*queue_pop)(ct_store *store, struct bytes key, int64_t deadline, void **value,
                           size_t *bytes);
    ct_status (*queue_len)(ct_store *store, struct bytes key, int64_t *length);
    ct_status (*list_keys)(ct_store *store, char ***keys, int *count);
    /* NULL if the kind has no server that counts workers. */
    ct_status (*wait_workers)(ct_store *store, int world_size, int64_t deadline);
    void (*close)(ct_store *store);
};

/* The struct of each kind of store starts with this struct.  A store made by ct_store_prefix(), a
 * prefix store, is only this struct. */
struct ct_store {
    const struct store_ops *ops; /* NULL in a prefix store */
    int timeout_ms;              /* the default limit of calls that wait; -1 if there is no limit */
    _Atomic int others;          /* number of holders less 1; the last holder frees the store */
    struct faults *faults;       /* injected into calls of the default group's store; else NULL */
    ct_store *base;              /* the store below a prefix store; NULL in other stores */
    pid_t maker;                 /* the process that made the store (forks.h) */
    char *prefix;                /* ends with "/" and has no NUL byte at its end */
    size_t prefix_size;
};

/* Adds a holder of the store.  The new holder must call ct_store_close().  Returns the store. */
ct_store *store_hold(ct_store *store);
/* Sets present[i] to 1 if keys[i] exists.  Checks all keys in one round trip. */
ct_status store_check_each(ct_store *store, const char *const *keys, int count, char *present);
/* Returns the store below all prefix stores. */
ct_store *store_bottom(ct_store *store);

/* Opens a file store.  If num_workers > 0, the file is removed when the file has been closed at
 * least num_workers times and no process has it open. */
ct_status store_file_open(const char *path, int num_workers, int timeout_ms, ct_store **store);

/* Collects the keys for ct_store_list_keys().  A zeroed list is empty. */
struct key_list {
    char *text; /* the keys, each with a NUL byte at its end */
    size_t size, room;
    int count;
    int failed;
};

void key_list_add(struct key_list *list, struct bytes key);
/* If status is CT_OK, sets *keys to one malloc'ed block with the pointers and the keys.  Frees the
 * list.  Returns status, or CT_ERR_NOMEM. */
ct_status key_list_finish(struct key_list *list, ct_status status, char ***keys, int *count);

/* Sets *value to a malloc'ed copy with a NUL byte behind it. */
ct_status value_copy(struct bytes from, void **value, size_t *bytes);

#endif
