/* SPDX-License-Identifier: Apache-2.0 */
/* call_probe.c - asking whether a peer makes the same call, and answering by breaking the group. */
#include "runtime/messaging/call_probe.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/messaging/group_channel.h"
#include "runtime/messaging/messaging_internal.h"

enum answer { SAME, OTHER, NOT_YET };

/* 1: this rank made that call and its signature is still there. */
static int recall(const struct recent_calls *recent, uint64_t seq, struct signature *call)
{
    const _Atomic uint64_t *words = recent->words[seq % QUESTION_CALLS];
    uint64_t values[sizeof *call / 8];

    values[0] = atomic_load_explicit(&words[0], memory_order_acquire);
    for (size_t i = 1; i < sizeof values / sizeof *values; i++)
        values[i] = atomic_load_explicit(&words[i], memory_order_acquire);
    memcpy(call, values, sizeof values);
    return values[0] == seq && atomic_load_explicit(&words[0], memory_order_relaxed) == seq;
}

static void break_for_mismatch(struct mesh *mesh, struct channel *channel,
                               const struct signature *mine, const struct signature *theirs,
                               int from)
{
    struct group_failure failure = { .from_call = mine->seq,
                                     .status = CT_ERR_MISMATCH,
                                     .rank = mesh->rank };

    signature_differ(mine, theirs, from, failure.words, sizeof failure.words);
    channel_fail_told(mesh, channel, &failure);
}

static enum answer compare(struct mesh *mesh, struct channel *channel,
                           const struct signature *theirs, int from)
{
    const uint64_t seq = theirs->seq;
    struct signature mine;

    if (!recall(&channel->calls, seq, &mine))
        return seq > atomic_load_explicit(&channel->last_call, memory_order_acquire) ? NOT_YET
                                                                                     : SAME;
    if (signature_equal(&mine, theirs))
        return SAME;
    break_for_mismatch(mesh, channel, &mine, theirs, from);
    return OTHER;
}

/* The latest of each peer: it is in no other call. */
static void keep_question(struct mesh *mesh, struct channel *channel,
                          const struct signature *signature, int from)
{
    struct question *question = channel->questions;

    while (question && question->from != from)
        question = question->next;
    if (!question) {
        if (!(question = malloc(sizeof *question)))
            return; /* its deadline will end the wait */
        question->next = channel->questions;
        question->from = from;
        channel->questions = question;
        atomic_fetch_add(&mesh->messages->questions, 1);
    }
    question->signature = *signature;
}

void question_arrived(struct mesh *mesh, const struct frame *frame, int from)
{
    struct channel *channel = channel_find(mesh->messages, frame->channel);

    if (!channel || frame->channel != channel->id || frame->signature.seq == 0)
        return; /* of a group that it asks again about, when that is made */
    if (channel->has_failed && channel->failure.from_call <= frame->signature.seq)
        answer_with_failure(mesh, frame, from);
    else if (compare(mesh, channel, &frame->signature, from) == NOT_YET)
        keep_question(mesh, channel, &frame->signature, from);
}

void questions_look(struct mesh *mesh)
{
    for (struct channel *channel = mesh->messages->channels; channel; channel = channel->next)
        for (struct question **link = &channel->questions; *link;) {
            struct question *question = *link;

            if (compare(mesh, channel, &question->signature, question->from) == NOT_YET) {
                link = &question->next;
                continue;
            }
            *link = question->next;
            free(question);
            atomic_fetch_sub(&mesh->messages->questions, 1);
        }
}

void questions_forget(struct mesh *mesh, struct channel *channel)
{
    while (channel->questions) {
        struct question *next = channel->questions->next;

        free(channel->questions);
        channel->questions = next;
        atomic_fetch_sub(&mesh->messages->questions, 1);
    }
}

void channel_call(struct mesh *mesh, struct channel *channel, const struct signature *call)
{
    struct messages *m = mesh->messages;

    recent_calls_add(&channel->calls, call);
    atomic_store_explicit(&channel->last_call, call->seq, memory_order_release);
    if (!atomic_load_explicit(&m->questions, memory_order_relaxed))
        return; /* one that comes at this very moment is seen by a look in a wait */
    pthread_mutex_lock(&mesh->transport->lock);
    questions_look(mesh);
    pthread_mutex_unlock(&mesh->transport->lock);
}

void ask(struct mesh *mesh, const struct request *request)
{
    struct outgoing *out;

    if (request->peer < 0 || request->peer == mesh->rank || !reach(mesh, request->peer)
        || !(out = calloc(1, sizeof *out)))
        return;
    out->frame = (struct frame){ .magic = FRAME_MAGIC,
                                 .kind = FRAME_ASK,
                                 .channel = request->channel,
                                 .tag = request->tag,
                                 .signature = request->signature };
    send_out_alone(mesh, request->peer, out);
}
