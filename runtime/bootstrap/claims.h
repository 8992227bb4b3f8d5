/* SPDX-License-Identifier: Apache-2.0 */
/* claims.h - each rank sets its number and the world's size at the store.
 *
 * Without this check, the ranks would wait for each other until the timeout if two live processes
 * had one number, or if ranks had different sizes.  The rank that finds the fault makes the init of
 * all ranks fail with one sentence.  A process may take the number of a process that has ended. */
#ifndef RUNTIME_BOOTSTRAP_CLAIMS_H
#define RUNTIME_BOOTSTRAP_CLAIMS_H

#include "runtime/bootstrap/host_leader.h"
#include "runtime/bootstrap/peer_info.h"

/* Compares this rank's size with another rank's.  CT_ERR_MISMATCH: they differ.  leader NULL:
 * compares at the store. */
ct_status claim_size(ct_store *store, int rank, int size, const struct host_leader *leader);

/* The key of the sentence that is set when two claims conflict.  Ranks that do not wait for the
 * cards read it. */
#define CLAIMS_FAILED_KEY "failed"

/* Sets this rank's card and counts it.  CT_ERR_MISMATCH: another live process has this rank.
 * CT_ERR_PEER: another process with this rank has joined the group that was made at this store. */
ct_status claim_rank(ct_store *store, const struct mesh *mesh, const struct host_leader *leader,
                     const struct leader_info *own, size_t bytes, int64_t deadline);

/* Finds the reason why this rank's leader is gone, perhaps after the leader joined its group.
 * CT_ERR_MISMATCH: claims conflicted, or that group already has this rank.  Otherwise returns
 * `status`. */
ct_status claim_reason(ct_store *store, const struct mesh *mesh, const struct host_leader *leader,
                       ct_status status);

/* Handles a notice that a leader got instead of the cards.  CT_OK: the leader waits again. */
ct_status claim_heed(ct_store *store, const struct mesh *mesh, const char *notice);

#endif
