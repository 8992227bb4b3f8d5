/* SPDX-License-Identifier: Apache-2.0 */
/* goodbye.c - tells the members that a rank has destroyed the group, so that they stop waiting for
 * that rank.
 *
 * A rank that destroys a group sends a GOODBYE on its open connections.  The rank's messages of the
 * group come before the GOODBYE, so a message that has not come by then will never come.  Only
 * requests that wait for that rank fail.  The members destroy a group one after the other, and most
 * members have finished with the group by then.
 *
 * For neighbours on its host to which it has no connection, a rank writes the group into its log in
 * shared memory.  (A frame would cost memory for each pair of ranks.) A rank reads the logs only of
 * ranks that have never written to it.  The GOODBYE of any other rank comes in the ring, after that
 * rank's messages.
 *
 * A peer on another host without a connection learns of the goodbye when it sends or probes, since
 * a rank remembers the last groups that it destroyed.  One case is not covered: a peer opens its
 * first connection while this rank is outside of the library.  Such a peer waits until its timeout.
 */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/messaging/device_rendezvous.h"
#include "runtime/messaging/group_channel.h"
#include "runtime/messaging/messaging_internal.h"

/* ---- Giving up -------------------------------------------------------------- */

static struct request *request_of(const struct messages *m, uint64_t channel)
{
    struct request *const lists[] = { m->posted, m->active, m->copies };

    for (int i = 0; i < 3; i++)
        for (struct request *r = lists[i]; r; r = r->next)
            if ((r->channel & ~1ull) == channel)
                return r;
    return NULL;
}

/* Cancels all requests of a group that is being destroyed, such as a ct_work that the program never
 * waited for.  The program owns the buffers again, and the requests release what they use of the
 * group. */
void channel_give_up(struct mesh *mesh, const struct channel *channel)
{
    struct messages *m = mesh->messages;
    struct request *request;

    pthread_mutex_lock(&mesh->transport->lock);
    while ((request = request_of(m, channel->id))) {
        request_give_up(mesh, request, CT_ERR_ABORTED, "its group was destroyed");
        pthread_mutex_unlock(&mesh->transport->lock);
        device_copy_finish(mesh, request);
        if (request->copy)
            request->copy->ops->end(request->copy);
        request->copy = NULL;
        pthread_mutex_lock(&mesh->transport->lock);
    }
    pthread_mutex_unlock(&mesh->transport->lock);
}

/* ---- Sending ---------------------------------------------------------------- */

static void send_goodbye(struct mesh *mesh, uint64_t channel, int peer)
{
    const struct endpoint *endpoint = endpoint_of(mesh, peer);
    struct outgoing *out;

    if (peer == mesh->rank || !endpoint_is_connected(endpoint) || endpoint->state != ENDPOINT_OPEN
        || !(out = calloc(1, sizeof *out)))
        return;
    out->frame =
        (struct frame){ .magic = FRAME_MAGIC, .kind = FRAME_GOODBYE, .channel = channel & ~1ull };
    send_out_alone(mesh, peer, out);
}

static int is_unconnected_neighbour(const struct mesh *mesh, int peer)
{
    return is_neighbour(mesh, peer) && !endpoint_of(mesh, peer)->out;
}

static void log_goodbye(struct mesh *mesh, const struct channel *channel)
{
    struct node *node = &mesh->node;
    struct goodbye_log *log = node_goodbyes(node, node->rank);
    const uint32_t count = atomic_load(&log->count);

    atomic_store(&log->channel[count % GOODBYES_KEPT], channel->id);
    atomic_store(&log->count, count + 1);
    atomic_fetch_add(&node->head->goodbyes, 1);
    for (int i = 0; i < channel->size; i++)
        if (is_unconnected_neighbour(mesh, channel->ranks[i]))
            bell_ring_stored(&node->bells[mesh->peers[channel->ranks[i]].local], node->wake_fd);
}

/* Sends a goodbye to all members.  Also reads what has arrived, because a rank that only creates
 * and destroys groups never reads otherwise. */
void channel_goodbye(struct mesh *mesh, const struct channel *channel)
{
    int unconnected = 0;

    pthread_mutex_lock(&mesh->transport->lock);
    take_arrivals(mesh);
    progress(mesh); /* connects this rank to ranks that have written to it */
    for (int i = 0; i < channel->size; i++) {
        send_goodbye(mesh, channel->id, channel->ranks[i]);
        unconnected += is_unconnected_neighbour(mesh, channel->ranks[i]);
    }
    if (unconnected > 0)
        log_goodbye(mesh, channel);
    progress(mesh);
    pthread_mutex_unlock(&mesh->transport->lock);
}

int answer_with_goodbye(struct mesh *mesh, const struct frame *frame, int from)
{
    if (!was_closed(mesh->messages, frame->channel))
        return 0;
    send_goodbye(mesh, frame->channel, from);
    return 1;
}

/* ---- Receiving --------------------------------------------------------------- */

static int index_of(const struct channel *channel, int peer)
{
    for (int i = 0; i < channel->size; i++)
        if (channel->ranks[i] == peer)
            return i;
    return -1;
}

/* Returns 1 if the request can't complete because the peer has destroyed the group.  The peer
 * receives nothing more, even if it has sent a CTS.  An eager message completes without the
 * receiver. */
static int is_in_vain(const struct request *request, uint64_t channel, int peer)
{
    return request->peer == peer && (request->channel & ~1ull) == channel
           && (!request->is_send || request->out.frame.kind == FRAME_RTS
               || request->out.frame.kind == FRAME_DEVICE_RTS
               || (request->out.frame.kind == FRAME_DATA && request->out.written == 0));
}

static void goodbye_give_up(struct mesh *mesh, struct request *request)
{
    char reason[240], name[160];

    snprintf(reason, sizeof reason, "%s has destroyed the group",
             mesh_peer_name(mesh, request->peer, name, sizeof name));
    request->blame = (struct blame){ request->peer, BLAME_LEFT };
    request_give_up(mesh, request, CT_ERR_PEER, reason);
}

static void note_left(struct messages *m, struct channel *channel, int member)
{
    if (!channel->left && (channel->left = calloc((size_t)channel->size, 1)))
        m->left_channels++;
    if (channel->left)
        channel->left[member] = 1;
}

/* Keeps a goodbye of a group that this rank has not created yet.  Ignores the goodbye if this rank
 * has destroyed the group too. */
static void note_early(struct messages *m, uint64_t channel, int from)
{
    if (!was_closed(m, channel))
        m->early[m->earlies++ % CLOSED] = (struct early_goodbye){ channel & ~1ull, from };
}

void goodbyes_came_early(struct messages *m, struct channel *channel)
{
    for (unsigned i = 0; i < CLOSED && i < m->earlies; i++) {
        const struct early_goodbye *early = &m->early[i];
        const int member = early->channel == channel->id ? index_of(channel, early->peer) : -1;

        if (member >= 0)
            note_left(m, channel, member);
    }
}

void goodbye_arrived(struct mesh *mesh, const struct frame *frame, int from)
{
    struct messages *m = mesh->messages;
    struct channel *channel = channel_find(m, frame->channel);
    struct request **const lists[] = { &m->posted, &m->active };
    const int member = channel ? index_of(channel, from) : -1;

    if (frame->channel == FIRST_CHANNEL)
        endpoint_of(mesh, from)->left = 1;
    if (!channel)
        note_early(m, frame->channel, from);
    if (member < 0)
        return;
    note_left(m, channel, member);
    for (int i = 0; i < 2; i++)
        for (struct request *r = *lists[i]; r;) {
            if (!is_in_vain(r, channel->id, from)) {
                r = r->next;
                continue;
            }
            goodbye_give_up(mesh, r);
            /* Other requests may have ended too.  Their owners may reuse them, so the loop starts
             * again at the head. */
            r = *lists[i];
        }
}

/* Handles the entries of one rank's log that were not read yet.  progress() comes after the count
 * is read: it sets endpoint->heard if the rank has written to this rank before these goodbyes. */
static void read_log(struct mesh *mesh, int local)
{
    struct messages *m = mesh->messages;
    const int peer = mesh->node.ranks[local];
    const struct goodbye_log *log = node_goodbyes(&mesh->node, local);
    const uint32_t count = atomic_load(&log->count), lost = count - m->goodbyes_read[local];

    if (lost > 0)
        progress(mesh);
    if (lost > GOODBYES_KEPT)
        m->goodbyes_read[local] = count - GOODBYES_KEPT;
    for (; m->goodbyes_read[local] != count; m->goodbyes_read[local]++) {
        const struct frame frame = { .kind = FRAME_GOODBYE,
                                     .channel = atomic_load(
                                         &log->channel[m->goodbyes_read[local] % GOODBYES_KEPT]) };

        if (!endpoint_of(mesh, peer)->heard)
            goodbye_arrived(mesh, &frame, peer);
    }
}

/* Reads the logs of all ranks of this host. */
void take_new_goodbyes(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    if (!m->goodbyes_read
        && !(m->goodbyes_read = calloc((size_t)mesh->node.size, sizeof *m->goodbyes_read)))
        return; /* no memory: the next look tries again */
    m->goodbyes_seen = atomic_load(&mesh->node.head->goodbyes);
    for (int i = 0; i < mesh->node.size; i++)
        if (i != mesh->node.rank)
            read_log(mesh, i);
}

void look_for_goodbye(struct mesh *mesh, struct request *request)
{
    const struct channel *channel;
    int member;

    if (mesh->messages->left_channels == 0 || atomic_load(&request->done) || request->peer < 0)
        return;
    channel = channel_find(mesh->messages, request->channel);
    member = channel && channel->left ? index_of(channel, request->peer) : -1;
    if (member >= 0 && channel->left[member] && is_in_vain(request, channel->id, request->peer))
        goodbye_give_up(mesh, request);
}
