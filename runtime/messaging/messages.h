/* SPDX-License-Identifier: Apache-2.0 */
/* messages.h - messages between two ranks of a mesh, matched as MPI matches them.
 *
 * A message is matched to the first posted receive with its channel, sender and tag.  A small one
 * is sent at once (eager); the receiver keeps it until a receive asks for it.  A larger one waits
 * for its receive (rendezvous): the sender sends an RTS, the receiver answers with a CTS when the
 * receive is posted, and the bytes go straight into the receive's buffer.  A small one also takes
 * that way while the sender has no eager credit left; the receiver returns credit (FRAME_CREDIT) as
 * receives take what it keeps.  Any thread that waits for a request moves all of them. */
#ifndef RUNTIME_MESSAGING_MESSAGES_H
#define RUNTIME_MESSAGING_MESSAGES_H

#include <stdatomic.h>
#include <stdint.h>

#include "runtime/transport/frame.h"
#include "runtime/transport/mesh.h"

/* The largest eager message before there is a connection; then link_ops.eager_bytes. */
#define EAGER_BYTES (32u << 10)
/* The most bytes that a receiver keeps of one sender in eager messages that no receive has taken,
 * so that a slow rank need not keep all that fast ones send.  The sender counts them, records
 * included; the receiver returns them in steps of CREDIT_STEP. */
#define EAGER_CREDIT (4u << 20)
#define CREDIT_STEP (EAGER_CREDIT / 4)

enum frame_kind {
    FRAME_EAGER = 1,     /* header and payload of a message */
    FRAME_RTS,           /* sender: a message of so many bytes is ready */
    FRAME_CTS,           /* receiver: send it */
    FRAME_DATA,          /* header and payload of a message after its CTS */
    FRAME_MISMATCH,      /* receiver: this rank makes another call; with its signature */
    FRAME_PROBE,         /* a rank that waits: it is in this call of the group; its signature */
    FRAME_FAILURE,       /* the group has failed: status and rank of the first failure, sentence */
    FRAME_GOODBYE,       /* the sender has destroyed the group */
    FRAME_DEVICE_RTS,    /* sender: the message lies in device memory; struct device_rts */
    FRAME_ATS,           /* receiver: it has copied the message out of the sender's memory */
    FRAME_DEVICE_CANCEL, /* sender: it gave up a message of which it sent a DEVICE_RTS */
    FRAME_CANCEL,        /* sender: it gave up a message of which it sent an RTS, or a part */
    FRAME_CREDIT         /* receiver: receives have taken so many bytes of eager messages */
};

struct device_copy; /* device_rendezvous.h */

/* The copy that a device makes for a request (device_rendezvous.c).  Until it is through, only
 * device_rendezvous.c ends the request. */
enum pending_copy { NO_COPY, COPY_FROM_PEER, COPY_TO_STAGING };

/* One send or receive, the caller's memory; in use until done is set. */
struct request {
    struct request *next, *previous; /* in one of the lists of struct messages */
    struct request **list;           /* which; NULL: in none */
    uint64_t id, channel;
    uint64_t met; /* of a receive: the id of the send */
    int peer;     /* rank in the mesh; CT_ANY_SOURCE until such a receive is matched */
    int tag;
    void *data;
    size_t bytes;
    struct signature signature;
    struct device_copy *copy; /* its data is on a device; NULL: in host memory */
    uint8_t is_send;
    uint8_t from_anybody;     /* its peer was CT_ANY_SOURCE: `peer` changes under the lock */
    uint8_t is_probe;         /* of a receive: it only looks, and gets sender, tag and signature */
    uint8_t pending_copy;     /* enum pending_copy */
    uint8_t sender_cancelled; /* of a receive: what it copies may have been overwritten */
    uint8_t background;       /* counted in messages->background: the progress thread moves it */
    ct_status given_up;       /* while its copy was pending; CT_OK: it was not */
    ct_status status;
    _Atomic int done;   /* set last */
    uint64_t looked_ns; /* when request_poll() last looked at its peer, by the coarse clock */
    struct blame blame; /* the rank because of which it failed */
    /* To fill these with zeros takes longer than to send a message does. */
    struct outgoing out; /* of a send */
    char reason[232];    /* "" while there is none */
};
_Static_assert(sizeof(struct request) <= 512, "two are what malloc() keeps in its quick lists");

/* The request and the bytes are the caller's, and stay as they are until the request is done.
 * request_wait() reports failures. */
void request_send(struct mesh *mesh, struct request *request, uint64_t channel, int to, int tag,
                  const void *data, size_t bytes, const struct signature *signature);
void request_recv(struct mesh *mesh, struct request *request, uint64_t channel, int from, int tag,
                  void *data, size_t bytes, const struct signature *signature);
/* Not started: a receive that is done when a message is there, and leaves it.  tag may be
 * CT_ANY_TAG. */
void request_prepare_probe(struct request *request, uint64_t channel, int from, int tag);
/* Several at once: prepared, then started together.  What goes to one peer leaves in one write. */
void request_prepare(struct request *request, int is_send, uint64_t channel, int peer, int tag,
                     void *data, size_t bytes, const struct signature *signature);
void requests_start(struct mesh *mesh, struct request *requests, int count);
/* The progress thread moves them while no thread waits. */
void requests_in_background(struct mesh *mesh, struct request *requests, int count);

/* Waits; *interrupted (may be NULL) set by another thread ends the wait with
 * CT_ERR_ABORTED.  On a failure the request is cancelled and its buffer free. */
ct_status request_wait(struct mesh *mesh, struct request *request, int64_t deadline,
                       const _Atomic int *interrupted);
/* The same, but at the deadline the request stays as it is.  1: it is done. */
int request_done_by(struct mesh *mesh, struct request *request, int64_t deadline,
                    const _Atomic int *interrupted);
int request_poll(struct mesh *mesh,
                 struct request *request); /* moves what it can,
                                            * and looks whether its peer lives; is it done? */
/* While it may be matched: of a receive from anybody, CT_ANY_SOURCE until it is. */
int request_peer(struct mesh *mesh, const struct request *request);
void request_cancel(struct mesh *mesh, struct request *request);

/* Is a receive from ourselves posted that a send to ourselves would match? */
int request_is_posted(struct mesh *mesh, uint64_t channel, int from, int tag);

/* Reads what has arrived, without waiting.  0: another thread has the lock. */
int messages_look(struct mesh *mesh);
/* The same, once per tick of the coarse clock, for a thread that only sends: it would not see that
 * its group has failed.  While other threads wait it looks each time: they find the lock taken by
 * the thread that sends, and rely on it to move what there is. */
void messages_glance(struct mesh *mesh);

ct_status messages_create(struct mesh *mesh);
void messages_destroy(struct mesh *mesh);

#endif
