/* SPDX-License-Identifier: Apache-2.0 */
/* claims.h - checks at the store that all ranks have the same world size, and that no two live
 * processes have the same rank number.
 *
 * Without this check, the ranks would wait for each other until the timeout.  The rank that finds a
 * conflict makes the init of all ranks fail with the same error message.  A process may take over
 * the rank number of a process that has ended. */
#ifndef RUNTIME_BOOTSTRAP_CLAIMS_H
#define RUNTIME_BOOTSTRAP_CLAIMS_H

#include "runtime/bootstrap/host_leader.h"
#include "runtime/bootstrap/peer_info.h"

/* Compares this rank's world size with the leader's or, on a leader or if `leader` is NULL, with
 * the size at the store.  Returns CT_ERR_MISMATCH if the two sizes differ. */
ct_status claim_size(ct_store *store, int rank, int size, const struct host_leader *leader);

/* The key of the error message about a conflict.  The key is not set without a conflict.  Ranks
 * that do not wait for the cards read this key. */
#define CLAIMS_FAILED_KEY "failed"

/* Sets this rank's card, and counts the rank.  Returns CT_ERR_MISMATCH if another live process has
 * this rank number.  Returns CT_ERR_PEER if another process with this rank number has joined the
 * group that was created at this store. */
ct_status claim_rank(ct_store *store, const struct mesh *mesh, const struct host_leader *leader,
                     const struct leader_info *own, size_t bytes, int64_t deadline);

/* Finds the reason why this rank's leader is gone, after an init failed with `status`.  Returns
 * CT_ERR_MISMATCH if two claims conflicted, or if the leader joined a group that already has this
 * rank number.  Returns CT_ERR_PEER if that group may have ended.  Otherwise returns `status`. */
ct_status claim_reason(ct_store *store, const struct mesh *mesh, const struct host_leader *leader,
                       ct_status status);

/* Handles a notice that a leader got instead of the cards.  Returns CT_OK if the leader must wait
 * again, or CT_ERR_MISMATCH with the error message of a conflict. */
ct_status claim_heed(ct_store *store, const struct mesh *mesh, const char *notice);

#endif
