/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - what ranks send to each other: a header, as it lies in memory, and a payload. */
#ifndef RUNTIME_TRANSPORT_FRAME_H
#define RUNTIME_TRANSPORT_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/types/call_signature.h"

#define FRAME_MAGIC 0x74636672u

struct frame {
    uint32_t magic;
    uint16_t kind;              /* enum frame_kind of messages.h */
    uint16_t device_rts_limits; /* CTS: bits of device_rendezvous.h */
    uint64_t channel;           /* one per group and purpose */
    int32_t tag;
    /* number of the frame on this link, from 0 on, since the link may have two connections */
    uint32_t turn;
    uint64_t bytes;  /* of the whole message */
    uint64_t id;     /* of the sender's request, in all frames about its message; ids grow.
                        FAILURE: the rank on which the group failed first */
    uint64_t answer; /* FAILURE: minus the status; CREDIT: bytes */
    struct signature signature; /* FAILURE: seq, from which call on; root and op, the blame */
};

struct request; /* messages.h */

/* A frame that waits to be written. */
struct outgoing {
    struct outgoing *next;
    struct frame frame;
    const void *payload;
    size_t bytes, written; /* of the payload; of frame and payload together */
    uint8_t is_large;      /* it goes on the lane of large frames, whatever its size */
    /* The handlers' own. */
    uint8_t background;      /* counted in messages->background */
    struct request *request; /* NULL: no request owns it, and on_sent() frees it */
};

#endif
