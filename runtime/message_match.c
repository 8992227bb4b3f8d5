/* SPDX-License-Identifier: Apache-2.0 */
/* message_match.c - which message meets which receive, and the lists in which they wait.
 *
 * A receive without a message stands among the posted, a message that nobody asked for yet among
 * the unexpected; both oldest first, so messages of one sender and tag are received as they were
 * sent.  Who starts a receive looks among the unexpected, what arrives looks among the posted.
 * Sends not yet gone and receives being filled are active: there the peer's answers and bytes find
 * them by id.  All of it runs under messages->lock, which request_is_posted() takes itself. */
#include <stdlib.h>

#include "runtime/messages.h"

/* ---- Requests ------------------------------------------------------------ */

void list_add(struct request **list, struct request *request)
{
    struct request *last = *list;

    request->list = list;
    request->next = NULL;
    if (!last) {
        request->previous = request; /* the first's previous is the last */
        *list = request;
        return;
    }
    request->previous = last->previous;
    last->previous->next = request;
    last->previous = request;
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

struct request *request_by_id(struct mesh *mesh, uint64_t id, int peer, int is_send)
{
    for (struct request *r = mesh->messages->active; r; r = r->next)
        if (r->id == id && r->peer == peer && r->is_send == is_send)
            return r;
    return NULL;
}

int matches(const struct request *receive, uint64_t channel, int from, int tag)
{
    return receive->channel == channel && receive->tag == tag
           && (receive->peer == from || receive->peer == CT_ANY_SOURCE);
}

struct request *take_posted(struct mesh *mesh, const struct frame *frame, int from)
{
    for (struct request *r = mesh->messages->posted; r; r = r->next)
        if (matches(r, frame->channel, from, frame->tag)) {
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

    pthread_mutex_lock(&mesh->messages->lock);
    for (struct request *r = mesh->messages->posted; r && !found; r = r->next)
        found = matches(r, channel, from, tag);
    pthread_mutex_unlock(&mesh->messages->lock);
    return found;
}

/* ---- Messages nobody asked for ------------------------------------------- */

void keep(struct mesh *mesh, struct unexpected *message)
{
    message->next = NULL;
    *mesh->messages->unexpected_end = message;
    mesh->messages->unexpected_end = &message->next;
}

struct unexpected *take_unexpected(struct messages *m, const struct request *receive)
{
    for (struct unexpected **link = &m->unexpected; *link; link = &(*link)->next) {
        struct unexpected *message = *link;

        if (matches(receive, message->frame.channel, message->from, message->frame.tag)) {
            *link = message->next;
            if (!*link)
                m->unexpected_end = link;
            return message;
        }
    }
    return NULL;
}

void unexpected_remove(struct messages *m, struct unexpected *message)
{
    struct unexpected **link = &m->unexpected;

    while (*link != message)
        link = &(*link)->next;
    *link = message->next;
    if (!*link)
        m->unexpected_end = link;
    free(message);
}

void forget_sender(struct messages *m, const struct request *send)
{
    for (struct unexpected *message = m->unexpected; message; message = message->next)
        if (message->sender == send) {
            unexpected_remove(m, message);
            return;
        }
}
