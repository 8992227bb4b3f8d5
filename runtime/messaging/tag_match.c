/* SPDX-License-Identifier: Apache-2.0 */
/* tag_match.c - matches messages with receives, and keeps the lists in which they wait.
 *
 * A receive without a message is in the list of posted receives.  A message that came before its
 * receive is in the list of unexpected messages.  Both lists are oldest first, so messages with the
 * same sender and tag are received in the order in which they were sent.  A new receive searches
 * the unexpected messages, and an arriving message searches the posted receives.  Sends and matched
 * receives are in the active list until they are done.  The peer's answers and bytes find them
 * there by id.  All functions here run under transport->lock, which request_is_posted() takes
 * itself. */
#include <stdlib.h>

#include "runtime/messaging/group_channel.h"
#include "runtime/messaging/messaging_internal.h"

/* ---- Groups -------------------------------------------------------------- */

/* An id is a hash times two (group.c), so the lowest bit is dropped. */
size_t place_of_id(uint64_t id)
{
    return (size_t)(id >> 1) % CHANNEL_PLACES;
}

struct channel *channel_find(const struct messages *m, uint64_t id)
{
    struct channel *channel = m->channels_by_id[place_of_id(id)];

    while (channel && channel->id != (id & ~(uint64_t)1))
        channel = channel->next_alike;
    return channel;
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

/* ---- Requests ------------------------------------------------------------ */

void list_add(struct request **list, struct request *request)
{
    struct request *last = *list;

    request->list = list;
    request->next = NULL;
    if (!last) {
        request->previous = request; /* the first request's `previous` is the last request */
        *list = request;
        return;
    }
    request->previous = last->previous;
    last->previous->next = request;
    last->previous = request;
}

void list_add_by_id(struct request **list, struct request *request)
{
    struct request *next = *list;

    if (!next || next->previous->id < request->id) {
        list_add(list, request);
        return;
    }
    while (next->id < request->id)
        next = next->next;
    request->list = list;
    request->next = next;
    request->previous = next->previous;
    next->previous = request;
    if (*list == next)
        *list = request;
    else
        request->previous->next = request;
}

void list_remove(struct request *request)
{
    struct request **list = request->list;

    if (!list)
        return;
    if (request->next)
        request->next->previous = request->previous;
    else
        (*list)->previous = request->previous;
    if (*list == request)
        *list = request->next;
    else
        request->previous->next = request->next;
    request->list = NULL;
}

struct request *send_by_id(const struct messages *m, uint64_t id, int to)
{
    for (struct request *r = m->active; r; r = r->next)
        if (r->is_send && r->id == id && r->peer == to)
            return r;
    return NULL;
}

struct request *receive_by_message(const struct messages *m, uint64_t id, int from)
{
    for (struct request *r = m->active; r; r = r->next)
        if (!r->is_send && r->met == id && r->peer == from)
            return r;
    return NULL;
}

static int tag_matches(const struct request *receive, uint64_t channel, int from, int tag)
{
    return receive->channel == channel
           && (receive->tag == tag || (receive->is_probe && receive->tag == CT_ANY_TAG))
           && (receive->peer == from || receive->peer == CT_ANY_SOURCE);
}

/* Ends the probe.  The sender goes to probe->peer and the frame to probe->out.frame.  The other
 * fields stay as the caller has set them, since another thread may be reading them. */
static void probe_finish(struct mesh *mesh, struct request *probe, const struct unexpected *message)
{
    list_remove(probe);
    probe->peer = message->from;
    probe->out.frame = message->frame;
    request_finish(mesh, probe, CT_OK, "");
}

struct request *take_posted(struct mesh *mesh, const struct frame *frame, int from)
{
    for (struct request *r = mesh->messages->posted; r; r = r->next)
        if (!r->is_probe && tag_matches(r, frame->channel, from, frame->tag)) {
            list_remove(r);
            if (r->from_anybody)
                r->peer = from;
            return r;
        }
    return NULL;
}

int request_is_posted(struct mesh *mesh, uint64_t channel, int from, int tag)
{
    int found = 0;

    pthread_mutex_lock(&mesh->transport->lock);
    for (struct request *r = mesh->messages->posted; r && !found; r = r->next)
        found = !r->is_probe && tag_matches(r, channel, from, tag);
    pthread_mutex_unlock(&mesh->transport->lock);
    return found;
}

/* ---- Unexpected messages ------------------------------------------------- */

/* Ends the posted probes that match the message, which must be in the list already, so that
 * receives find it too. */
static void show_to_probes(struct mesh *mesh, const struct unexpected *message)
{
    for (struct request *r = mesh->messages->posted, *next; r; r = next) {
        next = r->next;
        if (r->is_probe
            && tag_matches(r, message->frame.channel, message->from, message->frame.tag))
            probe_finish(mesh, r, message);
    }
}

void keep(struct mesh *mesh, struct unexpected *message)
{
    message->next = NULL;
    *mesh->messages->unexpected_end = message;
    mesh->messages->unexpected_end = &message->next;
    show_to_probes(mesh, message);
}

/* Keeps the message before later messages of the same sender.  A FAILURE frame is passed over,
 * because its id is a rank and not the id of a message. */
void keep_in_order(struct mesh *mesh, struct unexpected *message)
{
    struct messages *m = mesh->messages;
    struct unexpected **link = &m->unexpected;

    while (*link
           && ((*link)->from != message->from || (*link)->frame.kind == FRAME_FAILURE
               || (*link)->frame.id < message->frame.id))
        link = &(*link)->next;
    message->next = *link;
    *link = message;
    if (!message->next)
        m->unexpected_end = &message->next;
    show_to_probes(mesh, message);
}

struct frame_stream *stream_into(const struct mesh *mesh, const struct unexpected *message)
{
    struct frame_stream *stream = mesh->transport->streams;

    while (stream && stream->unexpected != message)
        stream = stream->next;
    return stream;
}

struct unexpected *take_unexpected(struct messages *m, const struct request *receive)
{
    for (struct unexpected **link = &m->unexpected; *link; link = &(*link)->next) {
        struct unexpected *message = *link;

        if (tag_matches(receive, message->frame.channel, message->from, message->frame.tag)) {
            *link = message->next;
            if (!*link)
                m->unexpected_end = link;
            return message;
        }
    }
    return NULL;
}

int probe_unexpected(struct mesh *mesh, struct request *probe)
{
    const struct unexpected *message = mesh->messages->unexpected;

    while (message
           && !tag_matches(probe, message->frame.channel, message->from, message->frame.tag))
        message = message->next;
    if (message)
        probe_finish(mesh, probe, message);
    return message != NULL;
}

void unexpected_free(struct mesh *mesh, struct unexpected *message)
{
    struct frame_stream *stream =
        message->frame.kind == FRAME_DATA ? stream_into(mesh, message) : NULL;

    if (stream) {
        stream->unexpected = NULL;
        stream->into = NULL; /* the rest of the payload is read and dropped */
    }
    eager_consumed(mesh, message->from, message->cost);
    scratch_give(&mesh->scratch, message);
}

void unexpected_remove(struct mesh *mesh, struct unexpected *message)
{
    struct messages *m = mesh->messages;
    struct unexpected **link = &m->unexpected;

    while (*link != message)
        link = &(*link)->next;
    *link = message->next;
    if (!*link)
        m->unexpected_end = link;
    unexpected_free(mesh, message);
}

void forget_sender(struct mesh *mesh, const struct request *send)
{
    for (struct unexpected *message = mesh->messages->unexpected; message; message = message->next)
        if (message->sender == send) {
            unexpected_remove(mesh, message);
            return;
        }
}
