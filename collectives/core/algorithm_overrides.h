/* SPDX-License-Identifier: Apache-2.0 */
/* algorithm_overrides.h - the algorithms that the user chose for a group and for the groups made
 * from this group.
 *
 * An override lists algorithms of an operation, each with the largest bytes per rank for which it
 * is used.  An override may also list paths of collectives/device.  A call on device memory tries
 * such a path first:
 *
 *     shm_one_shot:32K,shm_two_shot        the first up to 32 KiB, the second above
 *     ring                                 always
 *     fused:1M,nccl,ring                   on device memory fused or nccl, on host memory ring
 *
 * An override is read from CT_<OPERATION>, from ct_group_options.algorithms, or from the file that
 * CT_TUNING names.  CT_NETWORK, or a line "network" of that file, sets the time of a message
 * between hosts and the bandwidth: 30us,1.2GB/s. */
#ifndef COLLECTIVES_CORE_ALGORITHM_OVERRIDES_H
#define COLLECTIVES_CORE_ALGORITHM_OVERRIDES_H

#include <stdatomic.h>
#include <stddef.h>

#include "collectives/core/call.h"
#include "collectives/core/network_model.h"

#define MOST_OVERRIDES 8 /* the most overrides of an operation */

struct algorithm_override {
    enum path_number path; /* a path of device memory, or PATH_NONE if the override is a row */
    int row;
    size_t upto; /* bytes per rank; SIZE_MAX for any size */
};

struct choices {
    struct network_model network; /* before any measurement */
    int network_is_given;         /* 1 if CT_NETWORK or CT_TUNING sets it */
    struct algorithm_override overrides[OPERATION_COUNT][MOST_OVERRIDES];
    int count[OPERATION_COUNT];
    char source[OPERATION_COUNT][80]; /* where each operation's overrides were read, for messages */
    unsigned paths;                   /* bit i is set if an override has path i */
    enum path_number device;          /* the path set by CT_DEVICE; PATH_NONE if not set */
    int by_streams;                   /* 0 if CT_HANDOVER is "host" */
    int explain;                      /* 1 if CT_EXPLAIN is set, so each choice is logged once */
    /* [1 for device memory] bit i is set if a call of 2^i to 2^(i+1)-1 bytes was logged */
    _Atomic uint64_t explained[2][OPERATION_COUNT];
};

/* Writes the start of the line that CT_EXPLAIN logs for a call.  Returns its length, or 0 if
 * another rank logs the line or this rank has logged it before. */
size_t explain_begin(const struct call *c, int on_device, char *line, size_t size);
void explain_end(char *line, size_t used, size_t size);

#endif
