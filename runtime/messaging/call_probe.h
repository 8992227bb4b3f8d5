/* SPDX-License-Identifier: Apache-2.0 */
/* call_probe.h - checks whether the rank that this rank waits for is in the same call.
 *
 * Signatures are compared when a message meets its receive.  But if each rank takes itself for the
 * root and waits for the other, no message is sent that could show the mismatch.  So a rank that
 * has waited for about 2 ms sends the signature of its call, once, to the rank that it waits for.
 * This frame is a probe.  The receiver records its own last calls of each group, and compares the
 * probe with them.  If the receiver has not made the call yet, it keeps the probe until then.  It
 * keeps one probe per peer.
 *
 * If each rank takes itself for the root of a small broadcast, no rank waits, and each rank gets a
 * message that it does not receive.  So a rank checks for such messages at the end of each call
 * with a root. */
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

/* The last calls of this rank in a group.  The calling thread writes them without a lock.  Word 0
 * is the number of the call, or 0 while the call is being written. */
struct recent_calls {
    _Atomic uint64_t words[PROBE_CALLS][sizeof(struct signature) / 8];
};

/* A probe of a call that this rank has not made yet. */
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

/* Records a call that this rank starts, and compares it with the kept probes. */
void channel_call(struct mesh *mesh, struct channel *channel, const struct signature *call);

/* Sends a probe of this call to the peer.  It is for waits that have no struct request. */
void call_probe(struct mesh *mesh, struct channel *channel, int peer, const struct signature *call);

/* Compares this rank's calls with unexpected messages of calls that have a root.  The senders of
 * such messages do not wait, so they send no probe.  Returns CT_ERR_MISMATCH if a call differs. */
ct_status calls_compare_unexpected(struct mesh *mesh, struct channel *channel);

/* The functions below run under transport->lock. */
void note_unexpected(struct mesh *mesh, const struct unexpected *message);
void probe_send(struct mesh *mesh, const struct request *request);
void probe_arrived(struct mesh *mesh, const struct frame *frame, int from);
void probes_look(struct mesh *mesh); /* compares kept probes of calls that have started */
void probes_forget(struct mesh *mesh, struct channel *channel);

#endif
