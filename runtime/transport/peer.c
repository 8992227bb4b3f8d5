/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - a peer and its death, in the words of messages. */
#include <stdio.h>

#include "runtime/transport/mesh.h"

const char *mesh_peer_name(const struct mesh *mesh, int peer, char *text, size_t size)
{
    const struct peer *p = &mesh->peers[peer];

    snprintf(text, size, "rank %d (pid %d on %s)", peer, p->pid, p->host);
    return text;
}

const struct control_death *mesh_death(const struct mesh *mesh, int peer)
{
    const uint32_t number = atomic_load(&mesh->peers[peer].death);

    return number ? control_death(&mesh->control, number - 1) : NULL;
}

void mesh_death_words(const struct mesh *mesh, int peer, char *text, size_t size)
{
    const struct peer *p = &mesh->peers[peer];
    char how[96];

    control_death_words(mesh_death(mesh, peer), how, sizeof how);
    snprintf(text, size, "rank %d (pid %d on %s) %s", peer, p->pid, p->host, how);
}
