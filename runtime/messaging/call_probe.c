/* SPDX-License-Identifier: Apache-2.0 */
/* call_probe.c - compares probes of other ranks with this rank's calls.  If the calls differ, the
 * group fails.  If they are the same, the probe gets no answer. */
#include "runtime/messaging/call_probe.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/messaging/group_channel.h"
#include "runtime/messaging/messaging_internal.h"

enum answer { SAME, OTHER, NOT_YET };

/* Copies the recorded signature of call `seq` to *call.  Returns 1 if this rank made that call and
 * its signature is still recorded. */
static int recall(const struct recent_calls *recent, uint64_t seq, struct signature *call)
{
    const _Atomic uint64_t *words = recent->words[seq % PROBE_CALLS];
    uint64_t values[sizeof *call / 8];

    values[0] = atomic_load_explicit(&words[0], memory_order_acquire);
    for (size_t i = 1; i < sizeof values / sizeof *values; i++)
        values[i] = atomic_load_explicit(&words[i], memory_order_acquire);
    memcpy(call, values, sizeof values);
    return values[0] == seq && atomic_load_explicit(&words[0], memory_order_relaxed) == seq;
}

static void fail_for_mismatch(struct mesh *mesh, struct channel *channel,
                              const struct signature *mine, const struct signature *theirs,
                              int from)
{
    struct group_failure failure = { .from_call = mine->seq,
                                     .status = CT_ERR_MISMATCH,
                                     .rank = mesh->rank,
                                     .blame = { from, BLAME_MISMATCH } };

    signature_differ(mine, mesh->rank, theirs, from, failure.words, sizeof failure.words);
    channel_fail_told(mesh, channel, &failure);
}

static enum answer probe_compare(struct mesh *mesh, struct channel *channel,
                                 const struct signature *theirs, int from)
{
    const uint64_t seq = theirs->seq;
    struct signature mine;

    /* channel_call() writes last_call behind the call.  Read after recall(), it could show a call
     * that recall() found half written. */
    if (seq > atomic_load_explicit(&channel->last_call, memory_order_acquire))
        return NOT_YET;
    if (!recall(&channel->calls, seq, &mine))
        return SAME;
    if (signature_equal(&mine, theirs))
        return SAME;
    fail_for_mismatch(mesh, channel, &mine, theirs, from);
    return OTHER;
}

/* Keeps one probe per peer, since a peer is in one call at a time. */
static void keep_probe(struct mesh *mesh, struct channel *channel,
                       const struct signature *signature, int from)
{
    struct probe *probe = channel->probes;

    while (probe && probe->from != from)
        probe = probe->next;
    if (!probe) {
        if (!(probe = malloc(sizeof *probe)))
            return; /* no memory: the peer waits until its timeout */
        probe->next = channel->probes;
        probe->from = from;
        channel->probes = probe;
        atomic_fetch_add(&mesh->messages->probes, 1);
    }
    probe->signature = *signature;
}

void probe_arrived(struct mesh *mesh, const struct frame *frame, int from)
{
    struct channel *channel = channel_find(mesh->messages, frame->channel);

    if (!channel || frame->channel != channel->id || frame->signature.seq == 0)
        return; /* this rank has not created the group yet: the probe is dropped */
    if (channel->has_failed && channel->failure.from_call <= frame->signature.seq)
        answer_with_failure(mesh, frame, from);
    else if (probe_compare(mesh, channel, &frame->signature, from) == NOT_YET)
        keep_probe(mesh, channel, &frame->signature, from);
}

void probes_look(struct mesh *mesh)
{
    for (struct channel *channel = mesh->messages->channels; channel; channel = channel->next)
        for (struct probe **link = &channel->probes; *link;) {
            struct probe *probe = *link;

            if (probe_compare(mesh, channel, &probe->signature, probe->from) == NOT_YET) {
                link = &probe->next;
                continue;
            }
            *link = probe->next;
            free(probe);
            atomic_fetch_sub(&mesh->messages->probes, 1);
        }
}

void probes_forget(struct mesh *mesh, struct channel *channel)
{
    while (channel->probes) {
        struct probe *next = channel->probes->next;

        free(channel->probes);
        channel->probes = next;
        atomic_fetch_sub(&mesh->messages->probes, 1);
    }
}

void channel_call(struct mesh *mesh, struct channel *channel, const struct signature *call)
{
    struct messages *m = mesh->messages;

    recent_calls_add(&channel->calls, call);
    atomic_store_explicit(&channel->last_call, call->seq, memory_order_release);
    if (!atomic_load_explicit(&m->probes, memory_order_relaxed))
        return; /* a probe that arrives now is compared in the next wait */
    pthread_mutex_lock(&mesh->transport->lock);
    probes_look(mesh);
    pthread_mutex_unlock(&mesh->transport->lock);
}

static int has_root(const struct unexpected *message)
{
    return message->frame.kind != FRAME_FAILURE && message->frame.signature.root >= 0;
}

void note_unexpected(struct mesh *mesh, const struct unexpected *message)
{
    struct channel *channel =
        has_root(message) ? channel_find(mesh->messages, message->frame.channel) : NULL;

    if (channel)
        atomic_fetch_add(&channel->unexpected, 1);
}

ct_status calls_compare_unexpected(struct mesh *mesh, struct channel *channel)
{
    ct_status status = CT_OK;
    struct signature mine;
    char words[256];
    int count = 0;

    pthread_mutex_lock(&mesh->transport->lock);
    for (const struct unexpected *u = mesh->messages->unexpected; u; u = u->next) {
        const struct signature *theirs = &u->frame.signature;

        if (u->frame.channel != channel->id || !has_root(u))
            continue;
        count++;
        if (!recall(&channel->calls, theirs->seq, &mine) || signature_equal(&mine, theirs))
            continue;
        signature_differ(&mine, mesh->rank, theirs, u->from, words, sizeof words);
        status = ct_fail_because((struct blame){ u->from, BLAME_MISMATCH }, CT_ERR_MISMATCH, "%s",
                                 words);
    }
    atomic_store(&channel->unexpected, count);
    pthread_mutex_unlock(&mesh->transport->lock);
    return status;
}

void probe_send(struct mesh *mesh, const struct request *request)
{
    struct outgoing *out;

    if (request->peer < 0 || request->peer == mesh->rank || !ensure_connection(mesh, request->peer)
        || !(out = calloc(1, sizeof *out)))
        return;
    out->frame = (struct frame){ .magic = FRAME_MAGIC,
                                 .kind = FRAME_PROBE,
                                 .channel = request->channel,
                                 .tag = request->tag,
                                 .signature = request->signature };
    send_out_alone(mesh, request->peer, out);
}

void call_probe(struct mesh *mesh, struct channel *channel, int peer, const struct signature *call)
{
    struct request request;

    request_prepare(&request, 0, channel->id, peer, 0, NULL, 0, call);
    pthread_mutex_lock(&mesh->transport->lock);
    probe_send(mesh, &request);
    if (atomic_load(&mesh->messages->probes))
        probes_look(mesh);
    pthread_mutex_unlock(&mesh->transport->lock);
}
