/* SPDX-License-Identifier: Apache-2.0 */
/* device_rendezvous.h - a message whose bytes stay where they are, on a device, until its receiver
 * has them. */
#ifndef RUNTIME_MESSAGING_DEVICE_RENDEZVOUS_H
#define RUNTIME_MESSAGING_DEVICE_RENDEZVOUS_H

#include "runtime/device/memory_kind.h"
#include "runtime/messaging/protocol.h"

/* Plain data that travels. */
struct loan {
    struct device_handle handle;
    unsigned char device[16]; /* whose memory it is: space->id() */
    int32_t has_sample;
    struct device_handle sample; /* of that device's (peer_access_check.h), if it has */
};

/* What who accepts a message says of loans from that rank: bits. */
enum { NO_MORE_LOANS = 1, LOANS_WITH_SAMPLE = 2 };

/* Fewer bytes go unasked whatever the link: who sends those does not wait for a receiver.  And the
 * copies through the host that they take cost no more than to ask and to answer. */
#define LEND_ABOVE EAGER_BYTES

/* Of an errand, which one thread at a time moves a step on and which never waits. */
enum device_copy_step {
    DEVICE_COPY_GOES_ON,
    DEVICE_COPY_DONE,
    DEVICE_COPY_CANT,         /* nor has begun to */
    DEVICE_COPY_NEVER_CAN,    /* of that rank's memory, as it is now */
    DEVICE_COPY_NEEDS_SAMPLE, /* nobody knows whether it can */
    DEVICE_COPY_FAILED        /* with *status and a sentence; the device is through */
};

/* What makes the copies of a request whose data is on a device: it begins with this.  The layer
 * above, which knows devices, brings it along (runtime/p2p/device_staging.c). */
struct device_copy {
    const struct device_copy_ops *ops;
};

struct device_copy_ops {
    /* What is received is to come from there; or through the host after all. */
    void (*borrows)(struct device_copy *copy, const struct loan *loan);
    void (*is_not_taken)(struct device_copy *copy);
    /* From there into the caller's buffer.  given_up: nothing is begun any more. */
    enum device_copy_step (*take)(struct device_copy *copy, int given_up, ct_status *status);
    /* What was lent into host memory, which is host() then. */
    enum device_copy_step (*stage)(struct device_copy *copy, int given_up, ct_status *status);
    void *(*host)(struct device_copy *copy);
    void (*end)(struct device_copy *copy); /* however it went */
};

/* May it be offered a loan: is there a ring to it, and does it take them, with a sample? */
enum lending { LENDS_NOTHING, LENDS, LENDS_WITH_SAMPLE };
enum lending may_lend_to(struct mesh *mesh, int peer);
/* The send's device copy has a loan: not started yet, it becomes one. */
void request_lends(struct request *send, const struct loan *loan);

/* What devices do for requests moves, and nothing is waited for; without the messages' lock.  1:
 * there is more, so look again soon: no bell rings when a device is through. */
int errands_move(struct mesh *mesh);
int errands_are_left(const struct mesh *mesh);
void errands_nap(int naps); /* between two looks, of which there were so many */
/* One that was given up: by and by nothing copies for it any more, and it is done. */
void errand_end(struct mesh *mesh, struct request *request);

/* Under the messages' lock: protocol.c, request.c */
struct unexpected;
void loan_met(struct mesh *mesh, struct request *receive, const struct unexpected *message);
void loan_accepted(struct mesh *mesh, struct request *send, const struct frame *accept);
void loan_given_up(struct mesh *mesh, int peer, uint64_t id);
void loan_end_arrived(struct mesh *mesh, const struct frame *frame, int from);

#endif
