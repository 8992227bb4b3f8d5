/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - what travels between two ranks: a head, as it lies in memory, and a payload. */
#ifndef RUNTIME_TRANSPORT_FRAME_H
#define RUNTIME_TRANSPORT_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/types/call_signature.h"

#define FRAME_MAGIC 0x74636672u

struct frame {
    uint32_t magic;
    uint16_t kind;     /* enum frame_kind of protocol.h */
    uint16_t no_loans; /* accept: bits of device_rendezvous.h, of what you will lend me */
    uint64_t channel;  /* one per group and purpose */
    int32_t tag;
    uint32_t turn; /* of the frames that go this way, from 0 on: they may come on two connections */
    uint64_t bytes;  /* of the whole message */
    uint64_t id;     /* of a message: the sender's request, in all frames about it, and they grow;
                        break: the rank on which it broke first */
    uint64_t answer; /* break: minus the status; credit: bytes */
    struct signature signature;
};

struct request; /* protocol.h */

/* What waits to be written to a peer. */
struct outgoing {
    struct outgoing *next;
    struct frame frame;
    const void *payload;
    size_t bytes, written; /* payload's; of frame and payload together */
    uint8_t is_large;      /* it goes where large frames do, though it be small */
    /* The handlers' own. */
    uint8_t background;      /* counted in messages->background */
    struct request *request; /* NULL: no request owns it, and on_sent() frees it */
};

#endif
