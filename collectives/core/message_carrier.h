/* SPDX-License-Identifier: Apache-2.0 */
/* message_carrier.h - what carries the messages of a group's algorithms (sendrecv.h), if that is
 * not libct's own links: group->carrier. */
#ifndef COLLECTIVES_CORE_MESSAGE_CARRIER_H
#define COLLECTIVES_CORE_MESSAGE_CARRIER_H

#include "runtime/group/group.h"
#include "runtime/messaging/messages.h"

/* Of a request that request_prepare() has filled in.  A carrier may use its id, done and status. */
struct message_carrier {
    void (*start)(ct_group *group, struct request *requests, int count);
    /* Ends with CT_ERR_ABORTED when the group has failed.  After a failure the request is given up.
     */
    ct_status (*wait)(ct_group *group, struct request *request, int64_t deadline);
    void (*cancel)(ct_group *group, struct request *request);
};

#endif
