/* SPDX-License-Identifier: Apache-2.0 */
/* host_segment_join.h - makes the ranks of a host share memory, and finds out whether the host has
 * a processor for each rank. */
#ifndef RUNTIME_BOOTSTRAP_HOST_SEGMENT_JOIN_H
#define RUNTIME_BOOTSTRAP_HOST_SEGMENT_JOIN_H

#include "runtime/bootstrap/host_leader.h"

/* Sets *shared to 1 if all ranks of the host share memory.  If a rank can't or may_share is 0, sets
 * *shared to 0 on all ranks, and returns CT_OK. */
ct_status host_segment_join(struct host_leader *leader, struct mesh *mesh, int64_t deadline,
                            int may_share, int *shared);

#endif
