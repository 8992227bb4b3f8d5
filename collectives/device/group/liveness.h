/* SPDX-License-Identifier: Apache-2.0 */
/* liveness.h - whether the other ranks live, for who waits for a device and not for them.
 *
 * Who waits for a message hears when its sender is gone.  So from each rank a message is awaited
 * that mostly never comes: it would say that its sender gives up what all are about to do. */
#ifndef COLLECTIVES_DEVICE_LIVENESS_H
#define COLLECTIVES_DEVICE_LIVENESS_H

#include "collectives/core/call.h"
#include "runtime/messaging/protocol.h"

/* .call alone is set where it begins. */
struct watch {
    struct call *call;
    struct request *requests; /* [size - 1]; NULL: nobody had to look yet */
    int next;                 /* to be polled */
    int64_t gone_ms;          /* since when one is; 0: none is */
};

/* CT_ERR_PEER: one is gone, and what it left behind does not do.  CT_ERR_UNSUPPORTED: one has given
 * up. */
ct_status watch_look(struct watch *watch);
/* It failed with status; perhaps only because a rank is gone, which is heard of soon: then that. */
ct_status watch_for_cause(struct watch *watch, ct_status status);
void watch_end(struct watch *watch);

/* We give up: whoever watches hears it. */
void watch_tell(struct call *c);

#endif
