/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - a store behind ct_store_*: one table of operations per kind (tcp_store.c, file_store.c,
 * local_store.c, wrapped_store.c).  store.c has the public calls and what the kinds share. */
#ifndef RUNTIME_STORE_STORE_H
#define RUNTIME_STORE_STORE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/store/engine/value.h"
#include "runtime/util/error.h"

struct faults; /* fault_injection.h */

/* Keys are any bytes.  The operations return malloc'ed values, see ct.h.  Several threads may call
 * them at once. */
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
    ct_status (*wait_workers)(ct_store *store, int world_size, int64_t deadline); /* or NULL */
    void (*close)(ct_store *store);
};

/* Each kind of store starts with this struct.  A store that ct_store_prefix() made has nothing
 * more. */
struct ct_store {
    const struct store_ops *ops; /* NULL in a prefix */
    int timeout_ms;              /* the default of the waiting calls; -1: for ever */
    _Atomic int others;          /* holders besides the owner; the last holder frees the store */
    struct faults *faults;       /* injected into calls of the default group's store; NULL: none */
    ct_store *base;              /* the store below a prefix; NULL: this is not a prefix */
    pid_t maker;                 /* the process that made the store, see forks.h */
    char *prefix;                /* ends with "/", without a 0 byte */
    size_t prefix_size;
};

/* Adds a holder, who must call ct_store_close(). */
ct_store *store_hold(ct_store *store);
/* Sets present[i] to 1 if keys[i] exists, in one round trip for all. */
ct_status store_check_each(ct_store *store, const char *const *keys, int count, char *present);
/* Gives the store below all prefixes, which does the work. */
ct_store *store_bottom(ct_store *store);

/* Opens a file store.  num_workers > 0: the file is removed when it was closed that many times and
 * no process has it open. */
ct_status store_file_open(const char *path, int num_workers, int timeout_ms, ct_store **store);

/* The result of ct_store_list_keys(): pointers and strings in one block.  Zeroed: empty. */
struct key_list {
    char *text; /* the keys, each with a 0 byte at its end */
    size_t size, room;
    int count;
    int failed;
};

void key_list_add(struct key_list *list, struct bytes key);
/* Frees the list.  Returns status, or CT_ERR_NOMEM. */
ct_status key_list_finish(struct key_list *list, ct_status status, char ***keys, int *count);

/* Makes a malloc'ed copy, followed by a 0 byte. */
ct_status value_copy(struct bytes from, void **value, size_t *bytes);

#endif
