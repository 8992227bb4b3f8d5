/* SPDX-License-Identifier: Apache-2.0 */
/* liveness.h - checks that the other ranks are alive while this rank waits for a device.
 *
 * A rank that waits for a message learns that the sender is gone.  So a rank that waits for a
 * device posts a receive from each other rank.  Normally no message arrives.  A rank sends this
 * message only to tell that it gives up the step that all ranks are about to do. */
#ifndef COLLECTIVES_DEVICE_GROUP_LIVENESS_H
#define COLLECTIVES_DEVICE_GROUP_LIVENESS_H

#include "collectives/core/call.h"
#include "runtime/messaging/messages.h"

/* The receives of a rank that waits.  The caller sets only .call, and the other fields to 0. */
struct watch {
    struct call *call;
    struct request *requests; /* [size - 1]; NULL until the receives are posted */
    int next;                 /* index of the request to poll next */
    int64_t gone_ms;          /* when a rank was first found to be gone (clock_ms()); 0 if none */
};

/* Returns CT_ERR_PEER if a rank is gone and the call has not ended within a grace period.  Returns
 * CT_ERR_UNSUPPORTED if a rank has given up. */
ct_status watch_check(struct watch *watch);
/* Looks for the cause of a call that failed with `status`.  Returns the status of a death notice if
 * a rank's notice arrives soon, else returns `status`. */
ct_status watch_for_cause(struct watch *watch, ct_status status);
void watch_end(struct watch *watch);

/* Tells all other ranks that this rank gives up. */
void watch_send_give_up(struct call *c);

#endif
