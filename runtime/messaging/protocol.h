/* SPDX-License-Identifier: Apache-2.0 */
/* protocol.h - messages between two ranks of a mesh, matched as MPI matches them.
 *
 * A message is matched to the first posted receive with its channel, sender
 * and tag.  A small one goes unasked, and is kept by the receiver until it is asked for; a larger
 * one is offered first and sent when the receive is posted, straight into its buffer.  So is a
 * small one while the receiver keeps as much of this sender as it may: what a receive has taken the
 * receiver says now and then (CREDIT).  Whoever waits makes everything move. */
#ifndef RUNTIME_MESSAGING_PROTOCOL_H
#define RUNTIME_MESSAGING_PROTOCOL_H

#include <stdatomic.h>
#include <stdint.h>

#include "runtime/transport/frame.h"
#include "runtime/transport/mesh.h"

/* A message of so many bytes goes unasked though there is no link yet. */
#define EAGER_BYTES (32u << 10)
/* Where there is a link already, more do: to ask and be answered takes longer than to copy so much
 * once more, if it comes before its receive.  In memory the answer is a change of ranks, and so
 * much fits into a ring of up to 16 ranks; over sockets it is a round trip. */
#define EAGER_IN_MEMORY (128u << 10)
#define EAGER_OVER_SOCKETS (256u << 10)
/* Bytes that a receiver keeps of one sender in messages that no receive has taken yet: a slow one
 * would have to keep all that the fast ones send.  The sender counts them, with what it costs to
 * keep a message; it says in pieces of CREDIT_LEAST that they were taken. */
#define UNASKED_MOST (4u << 20)
#define CREDIT_LEAST (UNASKED_MOST / 4)

enum frame_kind {
    FRAME_EAGER = 1, /* header, payload */
    FRAME_OFFER,     /* "I have so many bytes for you" */
    FRAME_ACCEPT,    /* "send them" */
    FRAME_DATA,      /* header, payload of an accepted offer */
    FRAME_REFUSE,    /* "I make another call than you"; its signature says which */
    FRAME_ASK,       /* "I am in this call of the group": its signature */
    FRAME_BREAK,     /* "the group is broken": status, on which rank first, payload: its words */
    FRAME_LEAVE,     /* "I have destroyed the group" */
    FRAME_LEND,  /* "so many bytes lie there on a device": header, struct loan (device_rendezvous.h)
                  */
    FRAME_TAKEN, /* "I have copied them" */
    FRAME_LOAN_ENDS, /* "I have given up the message that I lent" */
    FRAME_CANCEL,    /* "I have given up the message that I offered, or sent in part" */
    FRAME_CREDIT     /* "so many bytes that came unasked are received" */
};

struct device_copy; /* device_rendezvous.h */

/* What a device does for a request meanwhile (device_rendezvous.c): nobody else ends it then. */
enum errand { NO_ERRAND, TAKES_LOAN, GOES_TO_HOST };

/* One send or receive, the caller's memory; in use until done is set. */
struct request {
    struct request *next, *previous; /* in one of the lists of struct messages */
    struct request **list;           /* which; NULL: in none */
    uint64_t id, channel;
    uint64_t met;     /* of a receive: the id of the send */
    int peer;         /* rank in the mesh; CT_ANY_SOURCE while a receive waits for anybody */
    int from_anybody; /* so `peer` may change, under the lock */
    int tag;
    void *data;
    size_t bytes;
    struct signature signature;
    struct device_copy *copy; /* its data is on a device; NULL: in host memory */
    uint8_t is_send;
    uint8_t errand;     /* enum errand */
    uint8_t loan_ended; /* of a receive: what it takes may be something else by now */
    uint8_t background; /* counted in messages->background: the thread moves it if nobody waits */
    ct_status given_up; /* during its errand; CT_OK: it was not */
    ct_status status;
    _Atomic int done;   /* set last */
    uint64_t looked_ns; /* when request_poll() last looked at its peer, by the coarse clock */
    /* To fill these with zeros takes longer than to send a message does. */
    struct outgoing out; /* of a send */
    char reason[240];    /* "" while there is none */
};
_Static_assert(sizeof(struct request) <= 512, "two are what malloc() keeps in its quick lists");

/* The bytes stay the caller's until the request is done.  Failures show up in
 * request_wait().  In the background, nobody need wait for it to move. */
void request_send(struct mesh *mesh, struct request *request, uint64_t channel, int to, int tag,
                  const void *data, size_t bytes, const struct signature *signature);
void request_recv(struct mesh *mesh, struct request *request, uint64_t channel, int from, int tag,
                  void *data, size_t bytes, const struct signature *signature);
/* Several at once: prepared, then started together.  What goes to one peer leaves in one write. */
void request_prepare(struct request *request, int is_send, uint64_t channel, int peer, int tag,
                     void *data, size_t bytes, const struct signature *signature);
void requests_start(struct mesh *mesh, struct request *requests, int count);
void requests_in_background(struct mesh *mesh, struct request *requests, int count);

/* Waits; *interrupted (may be NULL) set by another thread ends the wait with
 * CT_ERR_ABORTED.  On a failure the request is cancelled and its buffer free. */
ct_status request_wait(struct mesh *mesh, struct request *request, int64_t deadline,
                       const _Atomic int *interrupted);
/* The same, but at the deadline the request stays as it is.  1: it is done. */
int request_done_by(struct mesh *mesh, struct request *request, int64_t deadline,
                    const _Atomic int *interrupted);
int request_test(struct mesh *mesh, struct request *request); /* moves what it can; is it done? */
int request_poll(struct mesh *mesh, struct request *request); /* and looks whether its peer lives */
/* While it may be matched: of a receive from anybody, CT_ANY_SOURCE until it is. */
int request_peer(struct mesh *mesh, const struct request *request);
void request_cancel(struct mesh *mesh, struct request *request);

/* Is a receive from ourselves posted that a send to ourselves would match? */
int request_is_posted(struct mesh *mesh, uint64_t channel, int from, int tag);

/* Takes up what has arrived, without waiting.  0: another thread was at it. */
int messages_look(struct mesh *mesh);
/* The same, as often as the coarse clock moves: who only sends would not hear that its group
 * broke.  Always while other threads wait: they find the lock taken by who sends all the time, and
 * leave it to him to move what there is. */
void messages_glance(struct mesh *mesh);

ct_status messages_create(struct mesh *mesh);
void messages_destroy(struct mesh *mesh);

#endif
