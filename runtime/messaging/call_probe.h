/* SPDX-License-Identifier: Apache-2.0 */
/* call_probe.h - is the rank that this one waits for in the same call?
 *
 * Signatures are compared when a message meets its receive.  If the ranks make calls in which each
 * waits for the other (each takes itself for the root), no message is sent that could show it.  So
 * a rank that has waited for some 2 ms sends the signature of its call to the rank that it waits
 * for, once.  The receiver compares it with the last calls of that group, which it keeps for this.
 * A probe of a call that the receiver has yet to make is kept until then, one for each peer.
 *
 * If each rank takes itself for the root of a small broadcast, no rank waits, and each gets a
 * message that it does not receive.  At the end of a call with a root a rank checks for such
 * messages. */
#ifndef RUNTIME_MESSAGING_CALL_PROBE_H
#define RUNTIME_MESSAGING_CALL_PROBE_H

#include <stdatomic.h>

#include "include/ct.h"
#include "runtime/types/call_signature.h"

#define PROBE_CALLS 8

struct mesh;
struct unexpected;
struct channel;
struct request;
struct frame;

/* The thread that makes a call writes it, without a lock; word 0 is the number of the call, or 0
 * while it is written. */
struct recent_calls {
    _Atomic uint64_t words[PROBE_CALLS][sizeof(struct signature) / 8];
};

/* Of a call that this rank has yet to make. */
struct probe {
    struct probe *next;
    int from;
    struct signature signature;
};

static inline void recent_calls_add(struct recent_calls *recent, const struct signature *call)
{
    _Atomic uint64_t *words = recent->words[call->seq % PROBE_CALLS];
    uint64_t values[sizeof *call / 8];

    memcpy(values, call, sizeof values);
    atomic_store_explicit(&words[0], 0, memory_order_relaxed);
    for (size_t i = 1; i < sizeof values / sizeof *values; i++)
        atomic_store_explicit(&words[i], values[i], memory_order_release);
    atomic_store_explicit(&words[0], values[0], memory_order_release);
}

/* This rank begins a call. */
void channel_call(struct mesh *mesh, struct channel *channel, const struct signature *call);

/* For a wait that is not on a request of messaging: probes whether the peer makes this call. */
void call_probe(struct mesh *mesh, struct channel *channel, int peer, const struct signature *call);

/* Compares this rank's calls with a root with unexpected messages of such calls.  The senders of
 * these do not wait, so they send no probe. */
ct_status calls_compare_unexpected(struct mesh *mesh, struct channel *channel);

/* Under the lock. */
void note_unexpected(struct mesh *mesh, const struct unexpected *message);
void probe_send(struct mesh *mesh, const struct request *request);
void probe_arrived(struct mesh *mesh, const struct frame *frame, int from);
void probes_look(struct mesh *mesh); /* compares those whose call has begun */
void probes_forget(struct mesh *mesh, struct channel *channel);

#endif
