/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/messaging/failure_record.h"

#include <stdio.h>

#include "runtime/transport/mesh.h"

struct group_failure failure_here(const struct mesh *mesh, ct_status status, uint64_t from_call)
{
    struct group_failure failure = { .from_call = from_call, .status = status, .rank = mesh->rank };

    snprintf(failure.words, sizeof failure.words, "%s", ct_last_error());
    return failure;
}

ct_status failure_status(const struct mesh *mesh, const struct group_failure *failure)
{
    if (failure->rank == mesh->rank || failure->status == CT_ERR_MISMATCH)
        return (ct_status)failure->status;
    return CT_ERR_PEER;
}

ct_status failure_quote(const struct mesh *mesh, const struct group_failure *failure)
{
    const ct_status status = failure_status(mesh, failure);
    char name[160];

    if (failure->rank == mesh->rank)
        return ct_fail(status, "%s", failure->words);
    return ct_fail(status, "on %s the group is broken: %s",
                   mesh_peer_name(mesh, failure->rank, name, sizeof name), failure->words);
}
