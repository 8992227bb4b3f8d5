/* SPDX-License-Identifier: Apache-2.0 */
/* local_store.h - a store whose map is in this process.
 *
 * Before each operation, the file store reads the records of other processes into the map.  After
 * an operation that changes a key, it appends the change to the file. */
#ifndef RUNTIME_STORE_LOCAL_STORE_H
#define RUNTIME_STORE_LOCAL_STORE_H

#include <pthread.h>

#include "runtime/store/engine/hash_map.h"
#include "runtime/store/store.h"

struct local_store;

struct local_hooks {
    ct_status (*lock)(struct local_store *store, int to_write); /* called with the mutex locked */
    /* Called after a key changed.  value is NULL if the key was deleted. */
    ct_status (*changed)(struct local_store *store, struct bytes key, const struct bytes *value);
    void (*unlock)(struct local_store *store);
    void (*close)(struct local_store *store);
    /* The time between checks in a wait; 0 if no other process shares the store. */
    int poll_ms;
};

struct local_store {
    struct ct_store store;
    const struct local_hooks *hooks;
    pthread_mutex_t mutex;
    pthread_cond_t stored;
    struct budget budget; /* no limit, since the memory is the caller's own */
    struct map map;
};

ct_status local_store_init(struct local_store *store, const char *kind,
                           const struct local_hooks *hooks, int timeout_ms);
void local_store_done(struct local_store *store);

#endif
