/* SPDX-License-Identifier: Apache-2.0 */
/* device_rendezvous.h - sends a message between two devices without a copy through host memory.
 * The message stays in the sender's device memory until the receiver has copied it. */
#ifndef RUNTIME_MESSAGING_DEVICE_RENDEZVOUS_H
#define RUNTIME_MESSAGING_DEVICE_RENDEZVOUS_H

#include "runtime/device/memory_kind.h"
#include "runtime/messaging/messages.h"

/* The payload of a DEVICE_RTS. */
struct device_rts {
    struct device_handle handle; /* handle of the sender's buffer */
    unsigned char device[16];    /* id of the buffer's device, from space->id() */
    int32_t has_test_pattern;
    struct device_handle test_pattern; /* that device's test pattern (peer_access_check.h) */
};

/* Bits in a CTS that say whether the receiver accepts later DEVICE_RTS frames. */
enum { NO_MORE_DEVICE_RTS = 1, DEVICE_RTS_NEEDS_TEST_PATTERN = 2 };

/* Messages of up to so many bytes in device memory are eager, so that their sender does not wait
 * for the receiver.  Copying them through host memory costs no more than a rendezvous. */
#define DEVICE_RENDEZVOUS_ABOVE EAGER_BYTES

/* The result of one step of a pending copy.  A step never waits. */
enum device_copy_step {
    DEVICE_COPY_GOES_ON,
    DEVICE_COPY_DONE,
    DEVICE_COPY_CANT,               /* no copy was started for this message */
    DEVICE_COPY_NEVER_CAN,          /* a copy from that rank's memory can never start */
    DEVICE_COPY_NEEDS_TEST_PATTERN, /* peer access to that device has not been checked */
    DEVICE_COPY_FAILED              /* the device has stopped; *status, ct_last_error() say why */
};

/* The copy of a request's data in device memory.  This struct is the first member of struct
 * device_staging in runtime/p2p/device_staging.c, which calls the device. */
struct device_copy {
    const struct device_copy_ops *ops;
};

struct device_copy_ops {
    /* set_source() sets the sender's memory from which get() reads.  drop_source() forgets that
     * memory when the data comes through the host. */
    void (*set_source)(struct device_copy *copy, const struct device_rts *rts);
    void (*drop_source)(struct device_copy *copy);
    /* Runs a step of the copy from the source into the user's buffer.  Starts no copy if given_up
     * is 1. */
    enum device_copy_step (*get)(struct device_copy *copy, int given_up, ct_status *status);
    /* Runs a step of the copy from the user's buffer into host memory.  When the copy is done,
     * host() returns that host memory. */
    enum device_copy_step (*to_host)(struct device_copy *copy, int given_up, ct_status *status);
    void *(*host)(struct device_copy *copy);
    void (*end)(struct device_copy *copy); /* frees the copy after success or failure */
};

/* Whether this rank may send a DEVICE_RTS to the peer, and whether it must include a test pattern.
 * The peer must be on this host and accept DEVICE_RTS frames. */
enum device_rendezvous {
    NO_DEVICE_RENDEZVOUS,
    DEVICE_RENDEZVOUS,
    DEVICE_RENDEZVOUS_WITH_TEST_PATTERN
};
enum device_rendezvous device_rendezvous_with(struct mesh *mesh, int peer);
/* Makes a prepared send start with this DEVICE_RTS.  The send must not have been started. */
void request_send_device_rts(struct request *send, const struct device_rts *rts);

/* Moves all pending copies one step, without waiting and without the transport's lock.  Returns 1
 * if copies are left.  The caller then looks again soon, because no bell rings when a device is
 * done. */
int device_copies_move(struct mesh *mesh);
int device_copies_pending(const struct mesh *mesh);
/* Pauses between two looks at the pending copies.  `naps` is the number of pauses so far.  Later
 * pauses are longer. */
void device_copies_nap(int naps);
/* Waits until a request that was given up is done and no device copies for it. */
void device_copy_finish(struct mesh *mesh, struct request *request);

/* The functions below run under transport->lock, for arrivals.c and request.c. */
struct unexpected;
void device_rts_met(struct mesh *mesh, struct request *receive, const struct unexpected *message);
void device_cts_arrived(struct mesh *mesh, struct request *send, const struct frame *cts);
void device_send_cancelled(struct mesh *mesh, int peer, uint64_t id);
void device_cancel_arrived(struct mesh *mesh, const struct frame *frame, int from);

#endif
