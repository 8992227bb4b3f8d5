/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_segment.h - the size of the segments in which a buffer crosses several wires. */
#ifndef COLLECTIVES_CORE_PIPELINE_SEGMENT_H
#define COLLECTIVES_CORE_PIPELINE_SEGMENT_H

#include <stddef.h>

#include "collectives/core/network_model.h"

/* Bytes of a message.  A message of MOST_SEGMENT bytes is eager, so no sender waits for an answer.
 */
#define LEAST_SEGMENT ((size_t)8 << 10)
#define MOST_SEGMENT ((size_t)128 << 10)

/* A segment crosses `wires` wires, one after the other.  It consists of `messages` messages. */
struct pipeline {
    int wires, messages;
};

static inline double pipeline_cost(const struct network_model *network, struct pipeline p,
                                   size_t bytes, size_t segment)
{
    const size_t longest = bytes < segment ? bytes : segment;
    const double segments = longest > 0 ? (double)((bytes + longest - 1) / longest) : 1;

    return (segments + p.wires - 1)
           * ((double)longest * network->us_per_byte + p.messages * network->overhead_us);
}

/* Returns the bytes of a segment for the least cost; a call may have fewer.  A segment costs
 * messages, and the last wire is idle until the first segment has crossed the others. */
static inline size_t pipeline_segment(const struct network_model *network, struct pipeline p,
                                      size_t bytes)
{
    size_t segment = MOST_SEGMENT * (size_t)p.messages;

    for (size_t less = segment / 2; less >= LEAST_SEGMENT * (size_t)p.messages; less /= 2)
        /* 1 %: otherwise programs that were compiled differently might round a tie differently. */
        if (1.01 * pipeline_cost(network, p, bytes, less)
            < pipeline_cost(network, p, bytes, segment))
            segment = less;
    return segment;
}

/* The pipeline of rail_broadcast_chain() among so many hosts. */
static inline struct pipeline pipeline_of_chain(int hosts)
{
    return (struct pipeline){ .wires = hosts - 1, .messages = 1 };
}

/* The pipeline of two_shot_to_root() among so many peers. */
static inline struct pipeline pipeline_of_parts(int peers)
{
    return (struct pipeline){ .wires = 2, .messages = peers - 1 };
}

#endif
