/* SPDX-License-Identifier: Apache-2.0 */
/* device_team.h - the ranks of a group that have one device, and what their executor does for them
 * beside the executors of other devices; a part of device_hier.c. */
#ifndef COLLECTIVES_DEVICE_TEAM_H
#define COLLECTIVES_DEVICE_TEAM_H

#include "collectives/device_offer.h"
#include "runtime/flat.h"

#define TEAM_SCRATCH                                                            \
    ((size_t)16 << 20) /* of an executor's device, where nobody's buffer serves \
                        */

struct team {
    struct call *call;
    const struct executors *e;
    struct flat *flat; /* NULL: this rank alone */
    int *rank;         /* [size] in the group, the executor's first */
    int size;
    char **send, **recv; /* [size], as the executor sees them */
    struct offer *offer; /* room for ours */
};

/* In each call: */
ct_status team_show(struct team *t);       /* to its executor, where this rank's buffers are */
int team_reach(struct team *t);            /* an executor: can it reach all of them? */
ct_status team_work(const struct team *t); /* an executor: all that is to do, with NCCL */
ct_status team_wait(const struct team *t); /* all: until the executor has done it */

#endif
