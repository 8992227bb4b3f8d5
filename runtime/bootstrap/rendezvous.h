/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.h - from "who am I" to a store at which exactly the ranks of this init meet. */
#ifndef RUNTIME_BOOTSTRAP_RENDEZVOUS_H
#define RUNTIME_BOOTSTRAP_RENDEZVOUS_H

#include "runtime/bootstrap/launcher_env.h"
#include "runtime/store/store.h"

struct rendezvous {
    ct_store *base;          /* as connected; NULL: the caller's */
    ct_store *store;         /* under the prefix of this round and init */
    struct store_host *host; /* this rank serves it */
    int size;
    int goodbyes; /* rank 0 serves it, and waits for a word from each of the others */
};

/* number: how often this process initialised before, equal on all ranks. */
ct_status rendezvous_open(struct rendezvous *r, const struct identity *identity,
                          const ct_init_options *options, int number, int64_t deadline);
/* A host serves until all others have said goodbye or are gone, or the deadline. */
void rendezvous_close(struct rendezvous *r, int64_t deadline);

#endif
