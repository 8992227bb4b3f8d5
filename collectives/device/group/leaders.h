/* SPDX-License-Identifier: Apache-2.0 */
/* leaders.h - the leader of a device: of the group's ranks that have it the lowest, which works for
 * all of them. */
#ifndef COLLECTIVES_DEVICE_GROUP_LEADERS_H
#define COLLECTIVES_DEVICE_GROUP_LEADERS_H

#include "include/ct.h"

struct leaders {
    int count, ranks;        /* so many; of so many ranks */
    int *rank;               /* [count] in the group, ascending */
    int *of;                 /* [ranks] which leader has that rank's device */
    unsigned char (*id)[16]; /* [count] of their devices */
    int mine;                /* which of them this rank is; -1: none */
};

/* From the ids of all ranks' devices: id(i, arg). */
ct_status leaders_find(struct leaders *leaders, int rank, int size,
                       const unsigned char *(*id)(int rank, const void *arg), const void *arg);
void leaders_free(struct leaders *leaders); /* all zero is fine */

#endif
