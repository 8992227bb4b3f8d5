/* SPDX-License-Identifier: Apache-2.0 */
/* goodbye.c - a member has destroyed the group: no rank need wait for it there any more.
 *
 * A rank that destroys a group sends a GOODBYE on the connections that are open.  All that it had
 * sent for the group comes before that frame, so what a peer still waits for will not come.  Only
 * requests that wait for that rank fail: the members destroy a group one after the other, and most
 * are done with it.
 *
 * To ranks of its host to which it has no connection, a rank writes the group into its log in the
 * memory that they share: a frame would cost memory for each pair of ranks.  Such a rank reads the
 * log of a rank that has never written to it; what comes in a ring is in order with the frames.
 *
 * A peer on another host without a connection learns of it when it sends or probes: a rank
 * remembers the last groups that it destroyed.  Not covered: a peer that opens its first connection
 * while this rank is outside of the library.  Its wait ends with the timeout. */
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

/* A ct_work that the program never waited for ends with its group.  Its buffer is the program's
 * again, and what it has of the group is given back. */
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

/* It also reads what has arrived: a rank that only makes and destroys groups would never do so. */
void channel_goodbye(struct mesh *mesh, const struct channel *channel)
{
    int unconnected = 0;

    pthread_mutex_lock(&mesh->transport->lock);
    take_arrivals(mesh);
    progress(mesh); /* ranks that have written to this one are connected from here on */
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

/* A peer that is gone receives nothing more, not even a message of which it sent a CTS.  An eager
 * message needs no receiver. */
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

/* This rank has destroyed the group too, or has yet to make it. */
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
            r = *lists[i]; /* other requests may have ended with it and are their owners' again */
        }
}

/* The entries of one rank's log that were not read yet. */
static void read_log(struct mesh *mesh, int local)
{
    struct messages *m = mesh->messages;
    const int peer = mesh->node.ranks[local];
    const struct goodbye_log *log = node_goodbyes(&mesh->node, local);
    const uint32_t count = atomic_load(&log->count), lost = count - m->goodbyes_read[local];

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

/* progress() shows which ranks have written to this one before their entry. */
void take_new_goodbyes(struct mesh *mesh)
{
    struct messages *m = mesh->messages;

    if (!m->goodbyes_read
        && !(m->goodbyes_read = calloc((size_t)mesh->node.size, sizeof *m->goodbyes_read)))
        return; /* the next look tries again */
    m->goodbyes_seen = atomic_load(&mesh->node.head->goodbyes);
    progress(mesh);
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
