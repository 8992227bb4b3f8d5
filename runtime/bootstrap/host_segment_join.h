/* SPDX-License-Identifier: Apache-2.0 */
/* host_segment_join.h - how the ranks of a host come to share memory, and whether
 * they have a processor each. */
#ifndef RUNTIME_BOOTSTRAP_HOST_SEGMENT_JOIN_H
#define RUNTIME_BOOTSTRAP_HOST_SEGMENT_JOIN_H

#include "runtime/bootstrap/host_leader.h"

/* When memory can't be shared, or may not be, every rank of the host gets *shared == 0 and CT_OK.
 */
ct_status host_segment_join(struct host_leader *leader, struct mesh *mesh, int64_t deadline,
                            int may_share, int *shared);

#endif
