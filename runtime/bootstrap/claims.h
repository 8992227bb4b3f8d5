/* SPDX-License-Identifier: Apache-2.0 */
/* claims.h - each rank claims its number and says the world's size at the store.
 *
 * Two live processes with one number, or two sizes, make no world: without this check the ranks
 * would wait for each other until the timeout.  The rank that finds it ends the waits of all with
 * one sentence.  A process that takes the number of one that has ended is a restart. */
#ifndef RUNTIME_BOOTSTRAP_CLAIMS_H
#define RUNTIME_BOOTSTRAP_CLAIMS_H

#include "runtime/bootstrap/host_leader.h"
#include "runtime/bootstrap/peer_info.h"

/* CT_ERR_MISMATCH: another rank has another size.  leader NULL: it is compared at the store. */
ct_status claim_size(ct_store *store, int rank, int size, const struct host_leader *leader);

/* Set to the sentence when two claims do not fit: for a rank that does not wait for the cards. */
#define CLAIMS_FAILED_KEY "failed"

/* Sets this rank's card, and counts it.  CT_ERR_MISMATCH: another process is this rank, and lives.
 * CT_ERR_PEER: another process of this rank is in the group that was made at this store. */
ct_status claim_rank(ct_store *store, const struct mesh *mesh, const struct host_leader *leader,
                     const struct leader_info *own, size_t bytes, int64_t deadline);

/* For a rank whose leader is gone, which may have made its group: CT_ERR_MISMATCH if claims that do
 * not fit were the reason, or if that group has this rank already; else `status`. */
ct_status claim_reason(ct_store *store, const struct mesh *mesh, const struct host_leader *leader,
                       ct_status status);

/* On a leader, for a notice that came instead of the cards.  CT_OK: the wait goes on. */
ct_status claim_heed(ct_store *store, const struct mesh *mesh, const char *notice);

#endif
