/* SPDX-License-Identifier: Apache-2.0 */
/* message_carrier.h - a replacement of libct's own links for the messages of a group's algorithms
 * (sendrecv.h): group->carrier. */
#ifndef COLLECTIVES_CORE_MESSAGE_CARRIER_H
#define COLLECTIVES_CORE_MESSAGE_CARRIER_H

#include "runtime/group/group.h"
#include "runtime/messaging/messages.h"

/* The functions get requests that request_prepare() has filled in.  A carrier may use a request's
 * id, done and status. */
struct message_carrier {
    void (*start)(ct_group *group, struct request *requests, int count);
    /* CT_ERR_ABORTED: the group has failed.  After a failure the request is given up. */
    ct_status (*wait)(ct_group *group, struct request *request, int64_t deadline);
    void (*cancel)(ct_group *group, struct request *request);
};

#endif
