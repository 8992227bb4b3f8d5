/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.h - opens the store of an init, which only the ranks of this init share. */
#ifndef RUNTIME_BOOTSTRAP_RENDEZVOUS_H
#define RUNTIME_BOOTSTRAP_RENDEZVOUS_H

#include "runtime/bootstrap/launcher_env.h"
#include "runtime/store/store.h"

struct rendezvous {
    ct_store *base;  /* the connected store; NULL if the caller passed a store */
    ct_store *store; /* the keys of this round and init in the connected or passed store */
    struct store_thread *host; /* the server; NULL if this rank does not serve the store */
    int size;                  /* number of ranks of the init */
    /* 1 if rank 0 serves the store until each other rank has incremented the key "goodbye" */
    int goodbyes;
};

/* If rank 0 published several addresses, a rank of another host sets under this key the address at
 * which it reached rank 0's host.  The key is set when all ranks have come to the store. */
#define REACHED_KEY "reached"

/* Opens the store of init number `number`, which must be the same on all ranks.  If a launcher's
 * store outlives the ranks, waits until the ranks have agreed on a generation. */
ct_status rendezvous_open(struct rendezvous *r, const struct identity *identity,
                          const ct_init_options *options, int number, int64_t deadline);
/* Closes the store.  A rank that serves the store first waits until all other ranks have sent a
 * goodbye or have disconnected, at most until the deadline. */
void rendezvous_close(struct rendezvous *r, int64_t deadline);

#endif
