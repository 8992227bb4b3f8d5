/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.h - the store of an init, which exactly its ranks share. */
#ifndef RUNTIME_BOOTSTRAP_RENDEZVOUS_H
#define RUNTIME_BOOTSTRAP_RENDEZVOUS_H

#include "runtime/bootstrap/launcher_env.h"
#include "runtime/store/store.h"

struct rendezvous {
    ct_store *base;            /* the connected store; NULL: the caller gave a store */
    ct_store *store;           /* base under the prefix of this round and init */
    struct store_thread *host; /* the server, if this rank serves the store */
    int size;
    int goodbyes; /* rank 0 serves the store until each other rank has added to "goodbye" */
};

/* If rank 0 published several addresses, a rank of another host sets under this key the address at
 * which it reached rank 0's host.  The key is set when all ranks have come to the store. */
#define REACHED_KEY "reached"

/* number: of this init in the process, equal on all ranks. */
ct_status rendezvous_open(struct rendezvous *r, const struct identity *identity,
                          const ct_init_options *options, int number, int64_t deadline);
/* Closes the store.  A rank that serves it waits until all other ranks have said goodbye or are
 * disconnected, at most until the deadline. */
void rendezvous_close(struct rendezvous *r, int64_t deadline);

#endif
