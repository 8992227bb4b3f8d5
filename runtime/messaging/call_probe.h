/* SPDX-License-Identifier: Apache-2.0 */
/* call_probe.h - "I am in this call of the group: are you?"
 *
 * A message is compared with the receive that it meets.  Where none is sent (ranks that
 * each take themselves for the root, and wait for all others), nothing would meet.  So who has
 * waited for some 2 ms sends its call's signature to the one it waits for, once.  A group
 * keeps those of its last calls for the comparison; a question about a call that this rank has
 * yet to make waits for it, one for each peer. */
#ifndef RUNTIME_MESSAGING_CALL_PROBE_H
#define RUNTIME_MESSAGING_CALL_PROBE_H

#include <stdatomic.h>

#include "runtime/types/call_signature.h"

#define QUESTION_CALLS 8

struct mesh;
struct channel;
struct request;
struct frame;

/* Written by who makes a call, without a lock; word 0 is its number, 0 while it is written. */
struct recent_calls {
    _Atomic uint64_t words[QUESTION_CALLS][sizeof(struct signature) / 8];
};

/* One that is about a later call. */
struct question {
    struct question *next;
    int from;
    struct signature signature;
};

static inline void recent_calls_add(struct recent_calls *recent, const struct signature *call)
{
    _Atomic uint64_t *words = recent->words[call->seq % QUESTION_CALLS];
    uint64_t values[sizeof *call / 8];

    memcpy(values, call, sizeof values);
    atomic_store_explicit(&words[0], 0, memory_order_relaxed);
    for (size_t i = 1; i < sizeof values / sizeof *values; i++)
        atomic_store_explicit(&words[i], values[i], memory_order_release);
    atomic_store_explicit(&words[0], values[0], memory_order_release);
}

/* This rank begins a call. */
void channel_call(struct mesh *mesh, struct channel *channel, const struct signature *call);

/* Under the lock. */
void ask(struct mesh *mesh, const struct request *request);
void question_arrived(struct mesh *mesh, const struct frame *frame, int from);
void questions_look(struct mesh *mesh); /* those that wait: has their call come? */
void questions_forget(struct mesh *mesh, struct channel *channel);

#endif
