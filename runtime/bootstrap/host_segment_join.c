/* SPDX-License-Identifier: Apache-2.0 */
/* host_segment_join.c - makes the ranks of a host share memory, and finds out whether the host has
 * a processor for each rank.
 *
 * The leader creates the memory, and sends its descriptor to each follower, which maps the memory.
 * Then each follower tells the leader whether it mapped the memory, and which processors it may
 * use.  The leader combines the answers and sends the result to all followers.  If any rank could
 * not map the memory, all ranks of the host use sockets. */
#include "runtime/bootstrap/host_segment_join.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/net/fd_passing.h"
#include "runtime/shm/host_segment.h"
#include "runtime/shm/processors.h"
#include "runtime/util/log.h"

/* If descriptors can't be passed (CT_ERR_UNSUPPORTED), sets *can_share to 0 and returns CT_OK.
 * Else returns `status`. */
static ct_status or_use_sockets(ct_status status, int32_t *can_share)
{
    if (status != CT_ERR_UNSUPPORTED)
        return status;
    log_line(LOG_WARN, "no shared memory (%s); the ranks of this host use sockets",
             ct_last_error());
    *can_share = 0;
    return CT_OK;
}

/* Returns CT_OK instead of CT_ERR_PEER, so that the leader continues if a follower has ended.  The
 * other followers can't notice that end while they wait for the memory, so the leader first sends
 * them the memory.  Then the missing answer makes the leader fail, and the leader tells them. */
static ct_status and_go_on(ct_status status)
{
    return status == CT_ERR_PEER ? CT_OK : status;
}

static ct_status send_memory(struct host_leader *leader, struct mesh *mesh, int memory,
                             int64_t deadline, int32_t *can_share)
{
    const int32_t has_memory = *can_share;
    ct_status status = and_go_on(host_give(leader, mesh, &has_memory, sizeof has_memory, deadline));

    for (int i = 0; i < leader->count && has_memory && status == CT_OK; i++)
        if (leader->sockets[i] >= 0)
            status = and_go_on(
                or_use_sockets(send_fds(leader->sockets[i], &memory, 1, deadline), can_share));
    return status;
}

static ct_status receive_memory(struct host_leader *leader, struct mesh *mesh, int64_t deadline,
                                int32_t *can_share)
{
    int32_t has_memory = 0;
    int memory = -1;
    ct_status status = host_take(leader, NULL, &has_memory, sizeof has_memory, deadline);

    *can_share = has_memory;
    if (status == CT_OK && has_memory)
        status = or_use_sockets(recv_fds(leader->socket, &memory, 1, deadline), can_share);
    if (status != CT_OK || memory < 0)
        return status;
    if (node_map_memory(&mesh->node, memory) < 0)
        *can_share = 0;
    return CT_OK;
}

/* Whether a rank can share memory, and its processors; or both for all ranks of the host. */
struct means {
    int32_t can_share;
    struct processors processors;
};

static ct_status add_up(struct host_leader *leader, struct mesh *mesh, int64_t deadline,
                        struct means *means)
{
    struct means *all = leader->is_self ? malloc((size_t)mesh->node.size * sizeof *all) : NULL;
    const struct means own = *means;
    ct_status status = CT_OK;

    if (leader->is_self && !all)
        status = ct_fail(CT_ERR_NOMEM, "no memory for %d ranks of this host", mesh->node.size);
    if (status == CT_OK)
        status = host_gather(leader, mesh, &own, sizeof own, all, deadline);
    for (int i = 0; leader->is_self && status == CT_OK && i < mesh->node.size; i++) {
        means->can_share &= all[i].can_share;
        processors_add(&means->processors, &all[i].processors);
    }
    free(all);
    if (status == CT_OK && leader->is_self)
        status = host_give(leader, mesh, means, sizeof *means, deadline);
    else if (status == CT_OK)
        status = host_take(leader, NULL, means, sizeof *means, deadline);
    return status;
}

ct_status host_segment_join(struct host_leader *leader, struct mesh *mesh, int64_t deadline,
                            int may_share, int *shared)
{
    const int memory = leader->is_self && may_share ? node_make_memory(&mesh->node) : -1;
    struct means means = { .can_share = memory >= 0 };
    ct_status status = leader->is_self
                           ? send_memory(leader, mesh, memory, deadline, &means.can_share)
                           : receive_memory(leader, mesh, deadline, &means.can_share);

    processors_own(&means.processors, "");
    if (status == CT_OK)
        status = add_up(leader, mesh, deadline, &means);
    if (status != CT_OK)
        return ct_fail_in(status, "sharing memory on this host: ");
    if (!means.can_share)
        node_unmap_memory(&mesh->node);
    mesh->node.has_processors = mesh->node.size <= processors_count(&means.processors);
    *shared = means.can_share;
    return CT_OK;
}
