/* SPDX-License-Identifier: Apache-2.0 */
/* liveness.h - checks that the other ranks live, for a rank that waits for a device.
 *
 * A rank that waits for a message learns when the sender is gone.  So a rank that waits for a
 * device posts a receive from each other rank.  The message that it waits for mostly never comes:
 * with it the sender says that it gives up what all ranks are about to do. */
#ifndef COLLECTIVES_DEVICE_GROUP_LIVENESS_H
#define COLLECTIVES_DEVICE_GROUP_LIVENESS_H

#include "collectives/core/call.h"
#include "runtime/messaging/messages.h"

/* The caller sets .call only. */
struct watch {
    struct call *call;
    struct request *requests; /* [size - 1]; NULL: not posted yet */
    int next;                 /* the request to be polled next */
    int64_t gone_ms;          /* when a rank was first found to be gone; 0: none is gone */
};

/* CT_ERR_PEER: a rank is gone, and the call has not ended by itself.  CT_ERR_UNSUPPORTED: a rank
 * has given up. */
ct_status watch_check(struct watch *watch);
/* Finds why the call failed with `status`.  If a death notice of a rank comes soon, returns its
 * status instead. */
ct_status watch_for_cause(struct watch *watch, ct_status status);
void watch_end(struct watch *watch);

/* Tells all other ranks that this rank gives up. */
void watch_send_give_up(struct call *c);

#endif
