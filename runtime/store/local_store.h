/* SPDX-License-Identifier: Apache-2.0 */
/* local_store.h - the operations of a store whose map is in this process.
 *
 * store/hash_store.c has nothing else; store/file_store.c reads what others wrote into the
 * map before each, and appends what it changes to the file after. */
#ifndef RUNTIME_STORE_LOCAL_STORE_H
#define RUNTIME_STORE_LOCAL_STORE_H

#include <pthread.h>

#include "runtime/store/engine/hash_map.h"
#include "runtime/store/store.h"

struct local_store;

struct local_hooks {
    ct_status (*lock)(struct local_store *store, int to_write); /* after the mutex */
    ct_status (*changed)(struct local_store *store, struct bytes key, const struct bytes *value);
    void (*unlock)(struct local_store *store);
    void (*close)(struct local_store *store);
    int poll_ms; /* how often to look when waiting for somebody outside; 0: never needed */
};

struct local_store {
    struct ct_store store;
    const struct local_hooks *hooks;
    pthread_mutex_t mutex;
    pthread_cond_t stored;
    struct budget budget; /* no limit: it is the caller's own memory */
    struct map map;
};

ct_status local_store_init(struct local_store *store, const char *kind,
                           const struct local_hooks *hooks, int timeout_ms);
void local_store_done(struct local_store *store);

#endif
