/* SPDX-License-Identifier: Apache-2.0 */
/* absent.c - what the algorithms' sources name and no simulated call comes to: rows of a group on
 * one host or of MPI, and what is said and done about ranks that fail. */
#include <stdlib.h>

#include "collectives/core/call.h"

static int never(const struct call *c)
{
    (void)c;
    return 0;
}

#define ABSENT_ROW(row) const struct algorithm row = { .name = "absent", .fits = never }
ABSENT_ROW(all_gather_shm);
ABSENT_ROW(all_reduce_shm_one_shot);
ABSENT_ROW(all_reduce_shm_two_shot);
ABSENT_ROW(broadcast_shm);
ABSENT_ROW(reduce_scatter_shm);
ABSENT_ROW(reduce_shm);
ABSENT_ROW(all_gather_mpi);
ABSENT_ROW(all_reduce_mpi);
ABSENT_ROW(barrier_mpi);
ABSENT_ROW(broadcast_mpi);
ABSENT_ROW(reduce_mpi);
ABSENT_ROW(reduce_scatter_mpi);

int ct_group_rank(const ct_group *group, int rank)
{
    (void)group, (void)rank;
    abort();
}

ct_status group_resolve(ct_group *group, ct_group **resolved)
{
    (void)group, (void)resolved;
    abort();
}

int has_begun(const ct_group *group, int member, uint64_t seq)
{
    (void)group, (void)member, (void)seq;
    abort();
}

const char *mesh_peer_name(const struct mesh *m, int peer, char *text, size_t size)
{
    (void)m, (void)peer, (void)text, (void)size;
    abort();
}

/* Calls are on host memory. */
const char *device_path_name(enum path_number path)
{
    (void)path;
    return "none";
}
