/* SPDX-License-Identifier: Apache-2.0 */
/* device_call.h - the executor of calls on device memory, and of calls in which a rank may have
 * nothing at all, so that its buffers don't tell whose memory the call is about (device_call.c). */
#ifndef COLLECTIVES_DEVICE_DEVICE_CALL_H
#define COLLECTIVES_DEVICE_DEVICE_CALL_H

#include "collectives/core/call.h"

extern const struct executor device_executor;

void device_forget(struct call *c); /* what is to be waited for first, waited for or not */
void device_end_group(ct_group *group);

#endif
