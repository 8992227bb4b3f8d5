/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - a peer, in the words of messages. */
#include <stdio.h>

#include "runtime/transport/mesh.h"

const char *mesh_peer_name(const struct mesh *mesh, int peer, char *text, size_t size)
{
    const struct peer *p = &mesh->peers[peer];

    snprintf(text, size, "rank %d (pid %d on %s)", peer, p->pid, p->host);
    return text;
}
