/* SPDX-License-Identifier: Apache-2.0 */
/* group_leave.c - a member has destroyed the group: nobody need wait for it there any more.
 *
 * It says so on the wires that are open (FRAME_LEAVE).  All that it had sent for the group lies
 * before that word, so what is still waited for will not come.  Only those who wait for it
 * fail: a group is destroyed by one rank after the other, and most are done with it.
 *
 * Whom it has no wire to hears it when it sends or asks: a rank remembers the last groups it
 * destroyed.  Not heard is it by who waits for a rank that is busy outside of the library, over
 * a wire that is opened only then; there the limit of time ends the wait. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/messaging/device_rendezvous.h"
#include "runtime/messaging/group_channel.h"
#include "runtime/messaging/messaging_internal.h"

/* ---- Giving up -------------------------------------------------------------- */

static struct request *request_of(const struct messages *m, uint64_t channel)
{
    struct request *const lists[] = { m->posted, m->active, m->errands };

    for (int i = 0; i < 3; i++)
        for (struct request *r = lists[i]; r; r = r->next)
            if ((r->channel & ~1ull) == channel)
                return r;
    return NULL;
}

/* Works that nobody waited for are lost with their group, but their buffers are the caller's, and
 * what they have of the group goes back to it. */
void channel_give_up(struct mesh *mesh, const struct channel *channel)
{
    struct messages *m = mesh->messages;
    struct request *request;

    pthread_mutex_lock(&mesh->transport->lock);
    while ((request = request_of(m, channel->id))) {
        request_give_up(mesh, request, CT_ERR_ABORTED, "its group was destroyed");
        pthread_mutex_unlock(&mesh->transport->lock);
        errand_end(mesh, request);
        if (request->copy)
            request->copy->ops->end(request->copy);
        request->copy = NULL;
        pthread_mutex_lock(&mesh->transport->lock);
    }
    pthread_mutex_unlock(&mesh->transport->lock);
}

/* ---- Saying it ------------------------------------------------------------- */

static void say(struct mesh *mesh, uint64_t channel, int peer)
{
    const struct wire *wire = &mesh->transport->wires[peer];
    struct outgoing *out;

    if (peer == mesh->rank || (!wire->out && !wire->opening) || wire->broken || wire->gone
        || !(out = calloc(1, sizeof *out)))
        return;
    out->frame =
        (struct frame){ .magic = FRAME_MAGIC, .kind = FRAME_LEAVE, .channel = channel & ~1ull };
    send_out_alone(mesh, peer, out);
}

/* It looks once more: a rank that makes and destroys groups, and only that, would never read what
 * the others say. */
void channel_leave(struct mesh *mesh, const struct channel *channel)
{
    pthread_mutex_lock(&mesh->transport->lock);
    take_arrivals(mesh);
    for (int i = 0; i < channel->size; i++)
        say(mesh, channel->id, channel->ranks[i]);
    progress(mesh);
    pthread_mutex_unlock(&mesh->transport->lock);
}

void note_closing(struct messages *m, uint64_t channel)
{
    m->closed[m->closings++ % CLOSED] = channel;
}

int was_closed(const struct messages *m, uint64_t channel)
{
    for (unsigned i = 0; i < CLOSED && i < m->closings; i++)
        if (m->closed[i] == (channel & ~1ull))
            return 1;
    return 0;
}

int answer_leaving(struct mesh *mesh, const struct frame *frame, int from)
{
    if (!was_closed(mesh->messages, frame->channel))
        return 0;
    say(mesh, frame->channel, from);
    return 1;
}

/* ---- Hearing it -------------------------------------------------------------- */

static int index_of(const struct channel *channel, int peer)
{
    for (int i = 0; i < channel->size; i++)
        if (channel->ranks[i] == peer)
            return i;
    return -1;
}

/* What it has not received yet it will not, though it accepted it; a small message needs no
 * receiver to be sent. */
static int is_in_vain(const struct request *request, uint64_t channel, int peer)
{
    return request->peer == peer && (request->channel & ~1ull) == channel
           && (!request->is_send || request->out.frame.kind == FRAME_OFFER
               || request->out.frame.kind == FRAME_LEND
               || (request->out.frame.kind == FRAME_DATA && request->out.written == 0));
}

static void give_up(struct mesh *mesh, struct request *request)
{
    char reason[240], name[160];

    snprintf(reason, sizeof reason, "%s has destroyed the group",
             mesh_peer_name(mesh, request->peer, name, sizeof name));
    request_give_up(mesh, request, CT_ERR_PEER, reason);
}

static void note_left(struct messages *m, struct channel *channel, int member)
{
    if (!channel->left && (channel->left = calloc((size_t)channel->size, 1)))
        m->left_channels++;
    if (channel->left)
        channel->left[member] = 1;
}

/* This rank has destroyed it too; or makes it after another was through with it. */
static void note_early(struct messages *m, uint64_t channel, int from)
{
    if (!was_closed(m, channel))
        m->early[m->earlies++ % CLOSED] = (struct early_leaver){ channel & ~1ull, from };
}

void leaves_came_early(struct messages *m, struct channel *channel)
{
    for (unsigned i = 0; i < CLOSED && i < m->earlies; i++) {
        const struct early_leaver *early = &m->early[i];
        const int member = early->channel == channel->id ? index_of(channel, early->peer) : -1;

        if (member >= 0)
            note_left(m, channel, member);
    }
}

void leave_arrived(struct mesh *mesh, const struct frame *frame, int from)
{
    struct messages *m = mesh->messages;
    struct channel *channel = channel_find(m, frame->channel);
    struct request **const lists[] = { &m->posted, &m->active };
    const int member = channel ? index_of(channel, from) : -1;

    if (frame->channel == FIRST_CHANNEL)
        mesh->transport->wires[from].left = 1;
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
            give_up(mesh, r);
            r = *lists[i]; /* with it others may have ended, and be their owners' again */
        }
}

void look_for_leaver(struct mesh *mesh, struct request *request)
{
    const struct channel *channel;
    int member;

    if (mesh->messages->left_channels == 0 || atomic_load(&request->done) || request->peer < 0)
        return;
    channel = channel_find(mesh->messages, request->channel);
    member = channel && channel->left ? index_of(channel, request->peer) : -1;
    if (member >= 0 && channel->left[member] && is_in_vain(request, channel->id, request->peer))
        give_up(mesh, request);
}
