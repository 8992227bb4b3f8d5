/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_segment.h - the size of the pieces of a ring broadcast, which ct_bench's cost model also
 * uses. */
#ifndef COLLECTIVES_HOSTS_PIPELINE_SEGMENT_H
#define COLLECTIVES_HOSTS_PIPELINE_SEGMENT_H

#include <stddef.h>

#define BROADCAST_SEGMENT ((size_t)128 << 10) /* bytes */

#endif
