/* SPDX-License-Identifier: Apache-2.0 */
/* absent.c - what the algorithms' sources name and no simulated call comes to: rows of a group on
 * one host, and what is said and done about ranks that fail. */
#include <stdlib.h>

#include "collectives/core/call.h"

static int never(const struct call *c)
{
    (void)c;
    return 0;
}

#define ROW_OF_ONE_HOST(row) const struct algorithm row = { .name = "shm", .fits = never }
ROW_OF_ONE_HOST(all_gather_shm);
ROW_OF_ONE_HOST(all_reduce_shm_one_shot);
ROW_OF_ONE_HOST(all_reduce_shm_two_shot);
ROW_OF_ONE_HOST(broadcast_shm);
ROW_OF_ONE_HOST(reduce_scatter_shm);
ROW_OF_ONE_HOST(reduce_shm);

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
