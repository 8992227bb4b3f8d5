/* SPDX-License-Identifier: Apache-2.0 */
/* host_segment_join.h - the ranks of a host share memory, and find out whether the host has a
 * processor for each rank. */
#ifndef RUNTIME_BOOTSTRAP_HOST_SEGMENT_JOIN_H
#define RUNTIME_BOOTSTRAP_HOST_SEGMENT_JOIN_H

#include "runtime/bootstrap/host_leader.h"

/* If the ranks cannot or may not share memory, each of them gets *shared == 0 and CT_OK. */
ct_status host_segment_join(struct host_leader *leader, struct mesh *mesh, int64_t deadline,
                            int may_share, int *shared);

#endif
