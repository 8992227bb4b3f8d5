/* SPDX-License-Identifier: Apache-2.0 */
/* device_rendezvous.h - a message stays in the sender's device memory until the receiver has copied
 * it out of there, without a detour through host memory. */
#ifndef RUNTIME_MESSAGING_DEVICE_RENDEZVOUS_H
#define RUNTIME_MESSAGING_DEVICE_RENDEZVOUS_H

#include "runtime/device/memory_kind.h"
#include "runtime/messaging/messages.h"

/* The payload of a DEVICE_RTS: plain data. */
struct device_rts {
    struct device_handle handle; /* of the sender's buffer */
    unsigned char device[16];    /* on which it lies: space->id() */
    int32_t has_test_pattern;
    struct device_handle test_pattern; /* of that device, for peer_access_check.h */
};

/* What the receiver of a DEVICE_RTS says of later ones, in its CTS: bits. */
enum { NO_MORE_DEVICE_RTS = 1, DEVICE_RTS_NEEDS_TEST_PATTERN = 2 };

/* Smaller messages are eager, so that their sender does not wait for the receiver.  The copies
 * through host memory cost no more than a rendezvous. */
#define DEVICE_RENDEZVOUS_ABOVE EAGER_BYTES

/* What one step of a pending copy came to.  A step never waits. */
enum device_copy_step {
    DEVICE_COPY_GOES_ON,
    DEVICE_COPY_DONE,
    DEVICE_COPY_CANT,               /* and nothing was begun */
    DEVICE_COPY_NEVER_CAN,          /* from that rank's memory, as things are */
    DEVICE_COPY_NEEDS_TEST_PATTERN, /* peer access to that device has not been checked */
    DEVICE_COPY_FAILED              /* with *status and a sentence; the device does nothing more */
};

/* What copies the data of a request that is in device memory; the first member of a larger struct.
 * It belongs to runtime/p2p/device_staging.c, which knows devices. */
struct device_copy {
    const struct device_copy_ops *ops;
};

struct device_copy_ops {
    /* The sender's memory that get() reads; drop_source(): the data comes through the host. */
    void (*set_source)(struct device_copy *copy, const struct device_rts *rts);
    void (*drop_source)(struct device_copy *copy);
    /* A step of the copy from the source into the user's buffer.  given_up: nothing is begun. */
    enum device_copy_step (*get)(struct device_copy *copy, int given_up, ct_status *status);
    /* A step of the copy from the user's buffer into host memory, which is host() then. */
    enum device_copy_step (*to_host)(struct device_copy *copy, int given_up, ct_status *status);
    void *(*host)(struct device_copy *copy);
    void (*end)(struct device_copy *copy); /* however it went */
};

/* May a DEVICE_RTS be sent to the peer: is it on this host, does it accept them, with a test
 * pattern? */
enum device_rendezvous {
    NO_DEVICE_RENDEZVOUS,
    DEVICE_RENDEZVOUS,
    DEVICE_RENDEZVOUS_WITH_TEST_PATTERN
};
enum device_rendezvous device_rendezvous_with(struct mesh *mesh, int peer);
/* The send was prepared and not started: it begins with this DEVICE_RTS. */
void request_send_device_rts(struct request *send, const struct device_rts *rts);

/* Moves all pending copies a step on, without waiting and without the transport's lock.  1: some
 * are left.  The caller looks again soon, since no bell rings when a device is done. */
int device_copies_move(struct mesh *mesh);
int device_copies_pending(const struct mesh *mesh);
void device_copies_nap(int naps); /* between two looks, of which there were so many */
/* Of a request that was given up: returns when no device copies for it and it is done. */
void device_copy_finish(struct mesh *mesh, struct request *request);

/* Under the transport's lock; called by arrivals.c and request.c. */
struct unexpected;
void device_rts_met(struct mesh *mesh, struct request *receive, const struct unexpected *message);
void device_cts_arrived(struct mesh *mesh, struct request *send, const struct frame *cts);
void device_send_cancelled(struct mesh *mesh, int peer, uint64_t id);
void device_cancel_arrived(struct mesh *mesh, const struct frame *frame, int from);

#endif
