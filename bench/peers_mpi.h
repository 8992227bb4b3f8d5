/* SPDX-License-Identifier: Apache-2.0 */
/* peers_mpi.h - an operation of peers_mpi, its buffers, their contents.
 *
 * peers_mpi.c measures, peers_mpi_check.c fills and compares; the operations are those of
 * peers_mpi_operations.c or, for oneCCL, of peers_oneccl.cpp. */
#ifndef PEERS_MPI_H
#define PEERS_MPI_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct call {
    int rank, ranks;
    int count; /* of the whole, or of each rank's block */
    float *send, *recv;
};

enum source {
    NOTHING,
    SUM,
    OWN_BLOCK_OF_SUM,
    ROOT,
    OWN_BLOCK_OF_ROOT,
    EACH,
    OWN_BLOCK_OF_EACH,
    OTHER
};

/* What a rank gives lies in send, or in recv where the call is in place. */
struct operation {
    const char *name;
    void (*call)(const struct call *call);
    int in_place;
    int send_blocks, recv_blocks; /* non-zero: one for each rank */
    int only_root_gets;
    enum source source; /* of what lies in recv afterwards */
    int trips;
};

extern const struct operation operations[];
extern const int operation_count;

/* After MPI_Init(). */
void operations_begin(const struct call *call);

void fill(const struct operation *operation, const struct call *call);

/* The number of compared elements, over all ranks, that are not what they must be.  All call it. */
long wrong(const struct operation *operation, const struct call *call);

#ifdef __cplusplus
}
#endif
#endif
