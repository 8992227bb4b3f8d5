/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_segment.h - the pieces of a broadcast in a ring, which ct_bench's model of it counts
 * too. */
#ifndef COLLECTIVES_HOSTS_PIPELINE_SEGMENT_H
#define COLLECTIVES_HOSTS_PIPELINE_SEGMENT_H

#include <stddef.h>

#define BROADCAST_SEGMENT ((size_t)128 << 10) /* bytes */

#endif
