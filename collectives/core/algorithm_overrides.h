/* SPDX-License-Identifier: Apache-2.0 */
/* algorithm_overrides.h - which algorithms the user wants, for a group and the groups made from it.
 *
 * An override lists rows of an operation, each for calls of up to so many bytes per rank.  It also
 * lists paths of a call on device memory; the call then tries that path first:
 *
 *     shm_one_shot:32K,shm_two_shot        the first up to 32 KiB, the second above
 *     ring                                 always
 *     fused:1M,nccl,ring                   on device memory one of the first two, else the third
 *
 * It comes from CT_<OPERATION>, from ct_group_options.algorithms, or from the file of CT_TUNING.
 * CT_NETWORK, or a line "network" of that file, gives the time of a message between hosts and the
 * bandwidth: 30us,1.2GB/s. */
#ifndef COLLECTIVES_CORE_ALGORITHM_OVERRIDES_H
#define COLLECTIVES_CORE_ALGORITHM_OVERRIDES_H

#include <stdatomic.h>
#include <stddef.h>

#include "collectives/core/call.h"

#define MOST_OVERRIDES 8 /* of one operation */

struct algorithm_override {
    enum path_number path; /* of device memory; PATH_NONE: this is a row */
    int row;
    size_t upto; /* bytes; SIZE_MAX: any size */
};

/* A network, for the models of algorithms.  n bytes from host to host take alpha_us + n
 * us_per_byte; each further message at the same time costs a rank overhead_us. */
struct network_model {
    double alpha_us, overhead_us, us_per_byte;
};
struct choices {
    struct network_model network;
    struct algorithm_override overrides[OPERATION_COUNT][MOST_OVERRIDES];
    int count[OPERATION_COUNT];
    char source[OPERATION_COUNT][80]; /* where an operation's overrides come from, for messages */
    unsigned paths;                   /* a bit for each path that some override names */
    enum path_number device;          /* CT_DEVICE */
    int by_streams;                   /* CT_HANDOVER is not host */
    int explain;                      /* CT_EXPLAIN: each choice is logged once */
    _Atomic uint64_t explained[2][OPERATION_COUNT]; /* [device memory] a bit for each power of two
                                                       of bytes that is logged */
};

/* Writes the beginning of CT_EXPLAIN's line for a call.  0: another rank logs the line, or this
 * rank has logged it before. */
size_t explain_begin(const struct call *c, int on_device, char *line, size_t size);
void explain_end(char *line, size_t used, size_t size);

#endif
