/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - a frame, the unit that ranks send to each other.  A frame is the bytes of a struct
 * frame, followed by a payload. */
#ifndef RUNTIME_TRANSPORT_FRAME_H
#define RUNTIME_TRANSPORT_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/types/call_signature.h"

#define FRAME_MAGIC 0x74636672u

struct frame {
    uint32_t magic;
    uint16_t kind;              /* enum frame_kind of messages.h */
    uint16_t device_rts_limits; /* in a CTS: bits of device_rendezvous.h */
    uint64_t channel;           /* each group has a channel for each purpose */
    int32_t tag;
    /* number of the frame among all frames to the peer, from 0; it orders the frames that go over
     * two connections */
    uint32_t turn;
    uint64_t bytes; /* size of the whole message */
    /* id of the sender's request, the same in all frames about a message and larger for later
     * requests; in a FAILURE, the rank where the group failed first */
    uint64_t id;
    uint64_t answer; /* in a FAILURE, -status; in a CREDIT, the number of bytes */
    /* the call; in a FAILURE, seq is the first call that fails, and root and op are the blame */
    struct signature signature;
};

struct request; /* messages.h */

/* A frame that waits to be written. */
struct outgoing {
    struct outgoing *next;
    struct frame frame;
    const void *payload;
    size_t bytes, written; /* size of the payload; bytes of frame and payload written so far */
    uint8_t is_large;      /* true if the frame uses the connection for large frames */
    /* Only the handlers use the next fields. */
    uint8_t background;      /* true if the frame is counted in messages->background */
    struct request *request; /* the owner; NULL if on_sent() must free this struct */
};

#endif
