/* SPDX-License-Identifier: Apache-2.0 */
/* failure_record.c - a broken group in words. */
#include "runtime/messaging/failure_record.h"

#include <stdio.h>

#include "runtime/transport/mesh.h"

struct breach breach_here(const struct mesh *mesh, ct_status status, uint64_t seq)
{
    struct breach breach = { .seq = seq, .status = status, .rank = mesh->rank };

    snprintf(breach.words, sizeof breach.words, "%s", ct_last_error());
    return breach;
}

ct_status breach_status(const struct mesh *mesh, const struct breach *breach)
{
    if (breach->rank == mesh->rank || breach->status == CT_ERR_MISMATCH)
        return (ct_status)breach->status;
    return CT_ERR_PEER;
}

ct_status breach_fail(const struct mesh *mesh, const struct breach *breach)
{
    const ct_status status = breach_status(mesh, breach);
    char name[160];

    if (breach->rank == mesh->rank)
        return ct_fail(status, "%s", breach->words);
    return ct_fail(status, "on %s the group is broken: %s",
                   mesh_peer_name(mesh, breach->rank, name, sizeof name), breach->words);
}
