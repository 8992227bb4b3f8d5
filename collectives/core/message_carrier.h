/* SPDX-License-Identifier: Apache-2.0 */
/* message_carrier.h - functions that carry the messages of a group's algorithms (sendrecv.h) in
 * place of libct's own links. group->carrier points to them. */
#ifndef COLLECTIVES_CORE_MESSAGE_CARRIER_H
#define COLLECTIVES_CORE_MESSAGE_CARRIER_H

#include "runtime/group/group.h"
#include "runtime/messaging/messages.h"

/* The functions receive requests that request_prepare() has filled in.  A carrier may use a
 * request's id, done and status. */
struct message_carrier {
    void (*start)(ct_group *group, struct request *requests, int count);
    /* Waits until the request is done.  If it fails, it has cancelled the request.  Returns
     * CT_ERR_ABORTED if the group has failed. */
    ct_status (*wait)(ct_group *group, struct request *request, int64_t deadline);
    void (*cancel)(ct_group *group, struct request *request);
};

#endif
