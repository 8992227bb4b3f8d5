/* SPDX-License-Identifier: Apache-2.0 */
/* host_exchange.h - steps that the ranks of one host take together within a call over several
 * hosts.  The ranks exchange data through slots in shared memory (slots.h), or by messages if they
 * share no memory.
 *
 * A trip is for few bytes.  The first rank of the host, the gate, gets the bytes that each rank of
 * the host shows, and gives all of these ranks one answer.
 *
 *     host_show(&trip, mine);             on the gate, trip.shown[i] is now what rank i showed
 *     ... the gate works, also with other hosts ...
 *     host_answer(&trip, answer);         on each rank, `answer` now has the gate's bytes
 *
 * Parts are for many bytes.  Each part is owned by one rank of the host.  host_fold() folds each
 * part over the ranks of the host and gives the result to the owner.  host_regroup() gives the
 * owner its part from each rank, not folded.  host_share() gives the owners' parts to all ranks of
 * the host. */
#ifndef COLLECTIVES_HOSTS_HOST_EXCHANGE_H
#define COLLECTIVES_HOSTS_HOST_EXCHANGE_H

#include "collectives/hosts/host_topology.h"

#define HOST_TRIP_MOST ((size_t)16 << 10) /* most bytes of a trip; a slot is larger (slots.c) */

struct host_trip {
    struct call *call;
    const struct level *level;
    size_t bytes;       /* bytes that each rank shows */
    size_t answer;      /* bytes of the answer */
    const void **shown; /* [ranks] on the gate: where each rank's bytes lie until the answer */
    char *room;         /* on the gate: memory for bytes that come by message, else NULL */
};

/* Begins a trip.  The caller must call host_trip_end() also after a failure. */
ct_status host_trip_begin(struct host_trip *trip, struct call *c, const struct level *level,
                          size_t bytes, size_t answer);
static inline int host_is_gate(const struct host_trip *trip)
{
    return trip->level->rank == 0;
}
ct_status host_show(struct host_trip *trip, const void *mine);
ct_status host_answer(struct host_trip *trip, void *answer);
void host_trip_end(struct host_trip *trip);

/* Parts of a buffer, each owned by one rank of the host.  The owner of part i is rank first + i of
 * the host, modulo the number of its ranks. */
struct host_parts {
    int owners, first;
    int spans; /* number of spans in each part */
    /* Returns where span k of an owner's part lies in this rank's memory, to be given or to be
     * received.  The data is NULL if this rank does not want the span.  The length is the same on
     * all ranks. */
    struct span (*span)(const struct call *c, const void *arg, int owner, int k);
    const void *arg;
};

/* Folds each part over the ranks of the host, and gives the partial result to the owner.
 * result->span() is called only for this rank's own part, with the call of partial results
 * (call_of_partials()) as argument. */
ct_status host_fold(struct call *c, const struct level *level, const struct host_parts *input,
                    const struct host_parts *result);
/* Gives each owner its part from each rank of the host, not folded.  The part that comes from rank
 * i goes to the spans that result->span() returns for owner i. */
ct_status host_regroup(struct call *c, const struct level *level, const struct host_parts *input,
                       const struct host_parts *result);
ct_status host_share(struct call *c, const struct level *level, const struct host_parts *parts);
/* Gives the owners' parts only to rank `reader` of the host, not to all ranks as host_share() does.
 */
ct_status host_collect(struct call *c, const struct level *level, const struct host_parts *parts,
                       int reader);

/* A buffer of `count` elements, cut into slices of nearly equal length.  Each part is one slice and
 * has one span. */
struct host_slices {
    char *data;
    size_t count;
    int slices;
};

/* Is a function for host_parts.span, with a struct host_slices as arg.  Returns the slice of
 * `owner`. */
struct span host_slice(const struct call *c, const void *slices, int owner, int k);
/* Returns the number of slices for a buffer of `bytes` bytes.  This is at most the number of ranks
 * of the smallest host.  Each slice has at least `least` bytes, unless there is only one slice. */
int host_slices_of(const ct_group *group, size_t bytes, size_t least);

/* Returns this rank's number among the owners; -1 if this rank owns no part. */
static inline int host_owner(const struct level *level, const struct host_parts *parts)
{
    const int number = (level->rank - parts->first + level->ranks) % level->ranks;

    return number < parts->owners ? number : -1;
}

#endif
