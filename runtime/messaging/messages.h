/* SPDX-License-Identifier: Apache-2.0 */
/* messages.h - messages between two ranks of a mesh, matched as MPI matches them.
 *
 * A message goes to the first posted receive with the same channel, sender and tag.  The sender
 * sends a small message at once (eager), and the receiver keeps the message until a receive takes
 * it.  A larger message waits for its receive (rendezvous).  The sender sends an RTS, and the
 * receiver answers with a CTS when the receive is posted.  Then the bytes go straight into the
 * receive's buffer.  A small message uses the rendezvous too while the sender has no eager credit
 * left.  The receiver returns credit (FRAME_CREDIT) when receives take the kept messages.  Any
 * thread that waits for a request moves all requests of the mesh. */
#ifndef RUNTIME_MESSAGING_MESSAGES_H
#define RUNTIME_MESSAGING_MESSAGES_H

#include <stdatomic.h>
#include <stdint.h>

#include "runtime/transport/frame.h"
#include "runtime/transport/mesh.h"

/* The largest eager message in bytes before there is a connection; afterwards EAGER_MOST. */
#define EAGER_BYTES (32u << 10)
_Static_assert(EAGER_BYTES + sizeof(struct frame) <= WHOLE_FRAME, "a send can be cancelled");
/* The most bytes of eager messages from one sender that a receiver keeps for later receives.  Thus
 * a slow rank need not keep all messages of fast senders.  The sender counts the bytes, plus a
 * struct unexpected for each message.  The receiver returns credit in steps of CREDIT_STEP. */
#define EAGER_CREDIT (4u << 20)
#define CREDIT_STEP (EAGER_CREDIT / 4)

enum frame_kind {
    FRAME_EAGER = 1,     /* header and payload of a message */
    FRAME_RTS,           /* from the sender: a message of this size is ready */
    FRAME_CTS,           /* from the receiver: send the message */
    FRAME_DATA,          /* header and payload of a message after its CTS */
    FRAME_MISMATCH,      /* from the receiver: the signature of its call, which differs */
    FRAME_PROBE,         /* from a waiting rank: the signature of its current call */
    FRAME_FAILURE,       /* the group has failed; first failed rank, its status and words */
    FRAME_GOODBYE,       /* the sender has destroyed the group */
    FRAME_DEVICE_RTS,    /* from the sender: the message is in device memory (device_rts) */
    FRAME_ATS,           /* from the receiver: its device has copied the message */
    FRAME_DEVICE_CANCEL, /* from the sender: it gave up a message after a DEVICE_RTS */
    FRAME_CANCEL,        /* from the sender: it gave up a message after an RTS or some bytes */
    FRAME_CREDIT         /* from the receiver: returns so many bytes of eager credit */
};

struct device_copy; /* device_rendezvous.h */

/* The copy that a device makes for a request.  Until the copy has ended, only device_rendezvous.c
 * may end the request. */
enum pending_copy { NO_COPY, COPY_FROM_PEER, COPY_TO_STAGING };

/* One send or receive.  The caller owns the memory and keeps it until `done` is set. */
struct request {
    struct request *next, *previous; /* neighbours in one list of struct messages */
    struct request **list;           /* the list that has this request; NULL if in none */
    uint64_t id, channel;
    uint64_t met; /* of a receive: the id of the matched send */
    int peer;     /* rank in the mesh; CT_ANY_SOURCE until a receive from any rank is matched */
    int tag;
    void *data;
    size_t bytes;
    struct signature signature;
    struct device_copy *copy; /* copies data in device memory; NULL if the data is in host memory */
    uint8_t is_send;
    /* 1 if the receive is from CT_ANY_SOURCE.  Then `peer` changes under the lock. */
    uint8_t from_anybody;
    /* 1 for a receive that only reads the sender, tag and signature of a message (ct_probe()). */
    uint8_t is_probe;
    uint8_t pending_copy;     /* enum pending_copy */
    uint8_t sender_cancelled; /* of a receive: the sender may overwrite the bytes being copied */
    uint8_t background;       /* 1 if counted in messages->background for the progress thread */
    ct_status given_up;       /* the status if this was given up during its copy; else CT_OK */
    ct_status status;
    _Atomic int done;   /* set after all other fields when the request ends */
    uint64_t looked_ns; /* coarse clock (ns) when request_poll() last checked the peer */
    struct blame blame; /* the rank that caused the failure */
    /* The fields below are not cleared.  Clearing them takes longer than sending a message. */
    struct outgoing out; /* the frame of a send, or the frame that a probe found */
    char reason[232];    /* why the request failed; "" if it has not */
};
_Static_assert(sizeof(struct request) <= 512, "two are what malloc() keeps in its quick lists");

/* Starts a send or receive.  The caller owns the request and the bytes, and leaves them unchanged
 * until the request is done.  request_wait() reports failures. */
void request_send(struct mesh *mesh, struct request *request, uint64_t channel, int to, int tag,
                  const void *data, size_t bytes, const struct signature *signature);
void request_recv(struct mesh *mesh, struct request *request, uint64_t channel, int from, int tag,
                  void *data, size_t bytes, const struct signature *signature);
/* Prepares a receive that is done when a message is there, and leaves the message for another
 * receive.  The receive is not started.  The tag may be CT_ANY_TAG. */
void request_prepare_probe(struct request *request, uint64_t channel, int from, int tag);
/* Prepares one of several requests, which requests_start() starts together.  Frames to the same
 * peer leave in one write. */
void request_prepare(struct request *request, int is_send, uint64_t channel, int peer, int tag,
                     void *data, size_t bytes, const struct signature *signature);
void requests_start(struct mesh *mesh, struct request *requests, int count);
/* Lets the progress thread move these requests while no thread waits. */
void requests_in_background(struct mesh *mesh, struct request *requests, int count);

/* Waits until the request is done.  Returns CT_ERR_TIMEOUT at the deadline, and CT_ERR_ABORTED if
 * another thread sets *interrupted (may be NULL).  After a failure the request is cancelled, and
 * the caller may reuse the buffer. */
ct_status request_wait(struct mesh *mesh, struct request *request, int64_t deadline,
                       const _Atomic int *interrupted);
/* Waits like request_wait(), but does not cancel the request at the deadline.  Returns 1 if the
 * request is done. */
int request_done_by(struct mesh *mesh, struct request *request, int64_t deadline,
                    const _Atomic int *interrupted);
/* Moves messages without waiting, and checks whether the peer lives.  Returns 1 if the request is
 * done. */
int request_poll(struct mesh *mesh, struct request *request);
/* Returns request->peer, safely while other threads may match the request.  For a receive from any
 * rank, this is CT_ANY_SOURCE until the receive is matched. */
int request_peer(struct mesh *mesh, const struct request *request);
void request_cancel(struct mesh *mesh, struct request *request);

/* Returns 1 if this rank has posted a receive that would match its own send to itself. */
int request_is_posted(struct mesh *mesh, uint64_t channel, int from, int tag);

/* Reads what has arrived, without waiting.  Returns 0 if another thread has the lock, else 1. */
int messages_look(struct mesh *mesh);
/* Calls messages_look() at most once per tick of the coarse clock.  A thread that only sends uses
 * this function to notice that its group has failed.  While other threads wait, each call looks:
 * the waiting threads may find the lock taken by the sending thread, and rely on that thread to
 * move their messages. */
void messages_glance(struct mesh *mesh);

ct_status messages_create(struct mesh *mesh);
void messages_destroy(struct mesh *mesh);

#endif
