/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.h - the store of an init, which exactly its ranks share. */
#ifndef RUNTIME_BOOTSTRAP_RENDEZVOUS_H
#define RUNTIME_BOOTSTRAP_RENDEZVOUS_H

#include "runtime/bootstrap/launcher_env.h"
#include "runtime/store/store.h"

struct rendezvous {
    ct_store *base;            /* as connected; NULL: the caller gave its own */
    ct_store *store;           /* base under the prefix of this round and init */
    struct store_thread *host; /* if this rank serves it */
    int size;
    int goodbyes; /* rank 0 serves it, and waits until each other rank has added to "goodbye" */
};

/* The key under which a rank of another host leaves the address at which it reached rank 0's host,
 * where rank 0 published several.  It is there when all ranks have come to the store. */
#define REACHED_KEY "reached"

/* number: of the init in this process, equal on all ranks. */
ct_status rendezvous_open(struct rendezvous *r, const struct identity *identity,
                          const ct_init_options *options, int number, int64_t deadline);
/* A rank that serves the store waits until all others have said goodbye or are disconnected, or for
 * the deadline. */
void rendezvous_close(struct rendezvous *r, int64_t deadline);

#endif
