/* SPDX-License-Identifier: Apache-2.0 */
/* death_notice.c - ends the requests that wait for a dead rank.
 *
 * Bytes that the dead rank wrote before its death are still read.  In shared memory they are read
 * at once.  From a socket they are read until the socket ends, which is soon unless the host is
 * lost too. */
#include "runtime/messaging/death_notice.h"

#include <stdio.h>

#include "runtime/messaging/messaging_internal.h"
#include "runtime/util/clock.h"

/* How long in ms a rank waits for a notice.  On an idle host a notice comes in less than 1 ms.
 * While a job of 256 ranks ran on two processors, a notice took more than 100 ms. */
#define NOTICE_MS 1000

/* Returns 1 if the peer's connection or process has ended and no death notice has come yet.
 * Returns 0 for a peer that sent a goodbye, since it left without dying. */
static int is_missed(struct mesh *mesh, int peer)
{
    const struct endpoint *endpoint = endpoint_of(mesh, peer);
    const int local = mesh->node.base ? mesh->peers[peer].local : -1;

    return peer != mesh->rank && mesh->peers[peer].worker >= 0 && !mesh_death(mesh, peer)
           && !endpoint->left
           && (endpoint->state != ENDPOINT_OPEN
               || (local >= 0 && node_peer_gone(&mesh->node, local)));
}

int64_t death_notice_due(struct mesh *mesh, const int *ranks, int size)
{
    int64_t due = 0;

    pthread_mutex_lock(&mesh->transport->lock);
    for (int i = 0; i < size; i++) {
        struct endpoint *endpoint = endpoint_of(mesh, ranks[i]);

        if (!is_missed(mesh, ranks[i]))
            continue;
        if (endpoint->notice_due == 0)
            endpoint->notice_due = deadline_after(NOTICE_MS);
        due = endpoint->notice_due > due ? endpoint->notice_due : due;
    }
    pthread_mutex_unlock(&mesh->transport->lock);
    return due;
}

/* Ends the requests that wait for the dead peer.  Called under transport->lock. */
static void end_messages(struct mesh *mesh, int peer, const struct control_death *death)
{
    struct endpoint *endpoint = endpoint_of(mesh, peer);
    char words[160];

    control_death_words(death, words, sizeof words);
    if (is_neighbour(mesh, peer))
        progress(mesh); /* opens the ring if the peer has written to it */
    peer_unreachable(mesh, peer, words);
    if (is_neighbour(mesh, peer) || death->how == CONTROL_HOST_LOST) {
        peer_gone(mesh, peer, words);
    } else if (endpoint->streams == 0 && endpoint->state != ENDPOINT_GONE
               && endpoint->ended_ms == 0) {
        endpoint->ended_ms = clock_ms(); /* the peer's connection may not be accepted yet */
        mesh->transport->ended++;
        progress(mesh);
    } /* else the requests end at the end of the peer's socket */
}

void mesh_take_death_notices(struct mesh *mesh)
{
    uint32_t first, now;

    pthread_mutex_lock(&mesh->transport->lock);
    first = atomic_load(&mesh->deaths);
    now = control_deaths(&mesh->control);
    for (uint32_t i = first; i < now; i++)
        for (int peer = 0; peer < mesh->size; peer++)
            if (mesh->peers[peer].worker == control_death(&mesh->control, i)->rank
                && peer != mesh->rank) {
                atomic_store(&mesh->peers[peer].death, i + 1);
                end_messages(mesh, peer, control_death(&mesh->control, i));
            }
    for (int i = 0; now > first && i < LOOKS_FOR_NEWCOMERS; i++)
        /* A failure that the dead rank reported must be recorded before its death. */
        progress(mesh);
    atomic_store(&mesh->deaths, now);
    pthread_mutex_unlock(&mesh->transport->lock);
    if (!mesh->on_death)
        return;
    /* on_death() takes a group's lock, which must not be taken under the transport's lock. */
    for (int peer = 0; peer < mesh->size; peer++)
        if (atomic_load(&mesh->peers[peer].death) > first)
            mesh->on_death(mesh->on_death_arg, peer);
}
