/* SPDX-License-Identifier: Apache-2.0 */
/* host_exchange.h - what the ranks of one host do together within a call over several hosts:
 * through the slots that they share, or by messages where they share no memory.
 *
 * For few bytes a trip: the host's first rank, the gate, gets what all ranks of the host show, and
 * gives all of them an answer.
 *
 *     host_show(&trip, mine);             on the gate trip.shown[i] is then what rank i showed
 *     ... the gate works, with other hosts too ...
 *     host_answer(&trip, answer);         the gate's bytes are then in everyone's `answer`
 *
 * For many bytes parts: some ranks of the host own a part each.  host_fold() gives each owner the
 * fold of its part over the ranks of the host, host_regroup() all of them unfolded, host_share()
 * gives all ranks the owners' parts. */
#ifndef COLLECTIVES_HOSTS_HOST_EXCHANGE_H
#define COLLECTIVES_HOSTS_HOST_EXCHANGE_H

#include "collectives/hosts/host_topology.h"

#define HOST_TRIP_MOST ((size_t)16 << 10) /* bytes; a slot has more (slots.c) */

struct host_trip {
    struct call *call;
    const struct level *level;
    size_t bytes;       /* that each rank shows, */
    size_t answer;      /* and that it gets */
    const void **shown; /* [ranks] on the gate: where what each rank showed lies until the answer */
    char *room;         /* for it, if it comes by message */
};

/* Begins one.  On failure host_trip_end() is due too. */
ct_status host_trip_begin(struct host_trip *trip, struct call *c, const struct level *level,
                          size_t bytes, size_t answer);
static inline int host_is_gate(const struct host_trip *trip)
{
    return trip->level->rank == 0;
}
ct_status host_show(struct host_trip *trip, const void *mine);
ct_status host_answer(struct host_trip *trip, void *answer);
void host_trip_end(struct host_trip *trip);

/* The ranks of the host from `first` on, in a circle, own a part each. */
struct host_parts {
    int owners, first;
    int spans; /* that an owner's part has */
    /* Span k of owner i's part in this rank's memory: of what it gives, or of what it gets, where
     * NULL as data means that this rank does not want it.  Its length is the same on all ranks. */
    struct span (*span)(const struct call *c, const void *arg, int owner, int k);
    const void *arg;
};

/* result: spans of this rank's own part, of partial results (call_of_partials()), with which they
 * are asked for; those of other owners are not. */
ct_status host_fold(struct call *c, const struct level *level, const struct host_parts *input,
                    const struct host_parts *result);
/* Each owner gets its part from each rank of the host: result has what comes from rank i as the
 * spans of owner i. */
ct_status host_regroup(struct call *c, const struct level *level, const struct host_parts *input,
                       const struct host_parts *result);
ct_status host_share(struct call *c, const struct level *level, const struct host_parts *parts);
/* To one rank of the host alone. */
ct_status host_collect(struct call *c, const struct level *level, const struct host_parts *parts,
                       int reader);

/* A buffer of `count` elements as parts of one span: slices of nearly equal length. */
struct host_slices {
    char *data;
    size_t count;
    int slices;
};

/* As host_parts.span, with a struct host_slices as arg. */
struct span host_slice(const struct call *c, const void *slices, int owner, int k);
/* How many: one for each rank that the smallest host has, but none of less than `least` bytes. */
int host_slices_of(const ct_group *group, size_t bytes, size_t least);

/* This rank's number as an owner; -1: it owns none. */
static inline int host_owner(const struct level *level, const struct host_parts *parts)
{
    const int number = (level->rank - parts->first + level->ranks) % level->ranks;

    return number < parts->owners ? number : -1;
}

#endif
