/* SPDX-License-Identifier: Apache-2.0 */
/* liveness.h - do the other ranks live?  For a rank that waits for a device, not for a message.
 *
 * A rank that waits for a message learns when the sender is gone.  So here a rank posts a receive
 * from each other rank, for a message that mostly never comes: it would say that its sender gives
 * up what all ranks are about to do. */
#ifndef COLLECTIVES_DEVICE_GROUP_LIVENESS_H
#define COLLECTIVES_DEVICE_GROUP_LIVENESS_H

#include "collectives/core/call.h"
#include "runtime/messaging/messages.h"

/* The caller sets .call alone. */
struct watch {
    struct call *call;
    struct request *requests; /* [size - 1]; NULL: not posted yet */
    int next;                 /* the request to be polled next */
    int64_t gone_ms;          /* since when a rank is gone; 0: none is */
};

/* CT_ERR_PEER: a rank is gone, and the call has not ended by itself.  CT_ERR_UNSUPPORTED: a rank
 * has given up. */
ct_status watch_check(struct watch *watch);
/* The call failed with `status`.  If a death notice of a rank comes soon, returns that instead. */
ct_status watch_for_cause(struct watch *watch, ct_status status);
void watch_end(struct watch *watch);

/* This rank gives up: sends that to all others. */
void watch_send_give_up(struct call *c);

#endif
