/* SPDX-License-Identifier: Apache-2.0 */
/* crossing.h - a message from or to device memory: it travels in host memory of its own.
 *
 * A request has one, or NULL for a buffer that the host reaches itself. */
#ifndef RUNTIME_CROSSING_H
#define RUNTIME_CROSSING_H

#include <stdatomic.h>

#include "runtime/group.h"
#include "runtime/space.h"

struct crossing;

/* *buf becomes host memory; what is sent lies there when this returns.  What is in the group's
 * stream now comes first. */
ct_status crossing_begin(ct_group *group, struct place place, void **buf, size_t bytes, int is_send,
                         int64_t deadline, struct crossing **crossing);
/* May what is received be written to the caller's buffer now?  By the deadline. */
int crossing_is_clear(struct crossing *crossing, int64_t deadline);
/* What was received goes into the caller's buffer. */
ct_status crossing_land(struct crossing *crossing, int64_t deadline);
void crossing_end(struct crossing *crossing); /* however it went; NULL is fine */

#endif
