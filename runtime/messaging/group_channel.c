/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/messaging/group_channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/messaging/messaging_internal.h"

/* The tag of FAILURE frames among the unexpected messages.  No receive has this tag. */
#define FAILURE_TAG (-1)
#define KEPT_FAILURES 64

/* ---- A failure ------------------------------------------------------------- */

struct group_failure failure_here(const struct mesh *mesh, ct_status status, uint64_t from_call)
{
    struct group_failure failure = {
        .from_call = from_call, .status = status, .rank = mesh->rank, .blame = ct_last_blame()
    };

    snprintf(failure.words, sizeof failure.words, "%s", ct_last_error());
    return failure;
}

ct_status failure_status(const struct mesh *mesh, const struct group_failure *failure)
{
    if (failure->rank == mesh->rank || failure->status == CT_ERR_MISMATCH)
        return (ct_status)failure->status;
    return CT_ERR_PEER;
}

/* Returns the blame of this rank's calls.  Ranks that make different calls blame each other.  If
 * another rank blames this rank for anything else, the failure started here, so the result is
 * BLAME_NONE. */
struct blame failure_blame(const struct mesh *mesh, const struct group_failure *failure)
{
    const struct blame blame = failure->blame;

    if (failure->rank == mesh->rank)
        return blame;
    if (blame.reason == BLAME_NONE)
        return (struct blame){ failure->rank, BLAME_FAILED };
    if (blame.rank != mesh->rank)
        return blame;
    return blame.reason == BLAME_MISMATCH ? (struct blame){ failure->rank, BLAME_MISMATCH }
                                          : (struct blame){ 0 };
}

ct_status failure_quote(const struct mesh *mesh, const struct group_failure *failure)
{
    const ct_status status = failure_status(mesh, failure);
    char name[160];

    if (failure->rank == mesh->rank)
        return ct_fail_because(failure->blame, status, "%s", failure->words);
    return ct_fail_because(failure_blame(mesh, failure), status, "the group failed on %s: %s",
                           mesh_peer_name(mesh, failure->rank, name, sizeof name), failure->words);
}

/* ---- Sending --------------------------------------------------------------- */

/* Returns 1 if a FAILURE frame can be sent to the peer.  The frame needs an open connection.  A
 * connection is opened for it only on a host with few ranks, since a group on one host also fails
 * in its shared memory (shm_failure.c). */
static int can_be_told(struct mesh *mesh, int peer)
{
    const struct endpoint *endpoint = endpoint_of(mesh, peer);

    if (peer == mesh->rank || endpoint->state != ENDPOINT_OPEN)
        return 0;
    return endpoint->out
           || (is_neighbour(mesh, peer) && mesh->node.size <= RINGS_POLLED
               && ensure_connection(mesh, peer));
}

static void channel_send_failure(struct mesh *mesh, const struct channel *channel, int peer)
{
    const size_t length = strlen(channel->failure.words);
    struct outgoing *out;

    if (!can_be_told(mesh, peer))
        return;
    if (!(out = calloc(1, sizeof *out + length)))
        return; /* no memory: this rank's goodbye tells the peer later */
    memcpy(out + 1, channel->failure.words, length);
    out->payload = out + 1;
    out->bytes = length;
    out->frame = (struct frame){ .magic = FRAME_MAGIC,
                                 .kind = FRAME_FAILURE,
                                 .channel = channel->id,
                                 .tag = FAILURE_TAG,
                                 .bytes = length,
                                 .id = (uint64_t)channel->failure.rank,
                                 .answer = (uint64_t)-channel->failure.status,
                                 .signature = { .seq = channel->failure.from_call,
                                                .root = channel->failure.blame.rank,
                                                .op = (int16_t)channel->failure.blame.reason } };
    send_out_alone(mesh, peer, out);
}

/* Fails a child group if its parent failed in the call that creates the child.  The members that
 * failed have not created the child. */
static void fail_if_unmade(struct mesh *mesh, struct channel *child, const struct channel *parent)
{
    struct group_failure failure = parent->failure;

    if (child->parent != parent->id || !child->born_in
        || parent->failure.from_call > child->born_in)
        return;
    failure.from_call = child->first_call;
    channel_fail_told(mesh, child, &failure);
}

/* Records the failure and sends it to the members.  The progress thread runs from now on until the
 * group is destroyed.  So peers that connect or probe later are told too, even if the program is
 * outside of the library. */
static void channel_set_failed(struct mesh *mesh, struct channel *channel,
                               const struct group_failure *failure)
{
    struct messages *m = mesh->messages;

    if (!channel->has_failed) {
        m->failed_channels++;
        m->background++;
        if (atomic_load(&m->waiting) == 0)
            progress_thread_wake(mesh);
    }
    channel->has_failed = 1;
    channel->failure = *failure;
    for (int i = 0; i < channel->size; i++)
        if (channel->ranks[i] != failure->rank)
            channel_send_failure(mesh, channel, channel->ranks[i]);
    for (struct channel *child = m->channels; child; child = child->next)
        fail_if_unmade(mesh, child, channel);
}

void channel_fail_told(struct mesh *mesh, struct channel *channel,
                       const struct group_failure *failure)
{
    if (channel->has_failed && channel->failure.from_call <= failure->from_call)
        return;
    channel->on_failure(channel->owner, failure);
    channel_set_failed(mesh, channel, failure);
}

/* Frames may have come over connections that are not accepted yet.  progress() accepts these
 * connections first, so that their peers are told too. */
void channel_fail(struct mesh *mesh, struct channel *channel, const struct group_failure *failure)
{
    const struct blame blame = ct_last_blame();
    char sentence[1024];

    snprintf(sentence, sizeof sentence, "%s", ct_last_error());
    pthread_mutex_lock(&mesh->transport->lock);
    for (int i = 0; i < LOOKS_FOR_NEWCOMERS && !channel->has_failed; i++)
        progress(mesh);
    if (!channel->has_failed || failure->from_call < channel->failure.from_call)
        channel_set_failed(mesh, channel, failure);
    pthread_mutex_unlock(&mesh->transport->lock);
    ct_fail_because(blame, (ct_status)failure->status, "%s", sentence);
}

void answer_with_failure(struct mesh *mesh, const struct frame *frame, int from)
{
    const struct channel *channel =
        mesh->messages->failed_channels > 0 ? channel_find(mesh->messages, frame->channel) : NULL;

    if (channel && channel->has_failed)
        channel_send_failure(mesh, channel, from);
}

/* ---- Receiving -------------------------------------------------------------- */

/* Reads a FAILURE frame.  The peer may be of another version, so each field is checked. */
static struct group_failure channel_read_failure(const struct mesh *mesh,
                                                 const struct unexpected *message)
{
    const struct frame *frame = &message->frame;
    struct group_failure failure = { .from_call = frame->signature.seq,
                                     .status = CT_ERR_PEER,
                                     .rank = message->from };

    if (frame->id < (uint64_t)mesh->size && frame->id != (uint64_t)mesh->rank)
        failure.rank = (int32_t)frame->id;
    if (frame->answer > 0 && frame->answer <= (uint64_t)-CT_ERR_NCCL)
        failure.status = -(int32_t)frame->answer;
    if (frame->signature.op > BLAME_NONE && frame->signature.op < BLAME_REASONS
        && frame->signature.root >= 0 && frame->signature.root < mesh->size)
        failure.blame = (struct blame){ frame->signature.root, frame->signature.op };
    snprintf(failure.words, sizeof failure.words, "%.*s", (int)frame->bytes,
             (const char *)message->data);
    return failure;
}

static void receive_failure(struct mesh *mesh, struct channel *channel,
                            const struct unexpected *message)
{
    const struct group_failure failure = channel_read_failure(mesh, message);

    channel_fail_told(mesh, channel, &failure);
}

/* Keeps the failure of a group that this rank has not created yet or destroyed long ago.  If there
 * are too many, the oldest failure is dropped. */
static void keep_failure(struct mesh *mesh, struct unexpected *message)
{
    struct unexpected *oldest = NULL;
    int kept = 0;

    for (struct unexpected *u = mesh->messages->unexpected; u; u = u->next)
        if (u->frame.kind == FRAME_FAILURE) {
            if (!oldest)
                oldest = u;
            kept++;
        }
    if (kept >= KEPT_FAILURES)
        unexpected_remove(mesh, oldest);
    keep(mesh, message);
}

/* Overwrites the frame's tag and channel, so that no receive takes the frame for a message. */
void failure_arrived(struct mesh *mesh, struct unexpected *message)
{
    struct channel *channel = channel_find(mesh->messages, message->frame.channel);

    message->frame.tag = FAILURE_TAG;
    message->frame.channel &= ~(uint64_t)1;
    if (channel) {
        receive_failure(mesh, channel, message);
    } else if (!was_closed(mesh->messages, message->frame.channel)) {
        keep_failure(mesh, message);
        return;
    }
    scratch_give(&mesh->scratch, message);
}

/* ---- Life -------------------------------------------------------------------- */

void channel_open(struct mesh *mesh, struct channel *channel)
{
    struct messages *m = mesh->messages;

    pthread_mutex_lock(&mesh->transport->lock);
    channel->next = m->channels;
    m->channels = channel;
    channel->next_alike = m->channels_by_id[place_of_id(channel->id)];
    m->channels_by_id[place_of_id(channel->id)] = channel;
    for (struct unexpected *u = m->unexpected, *next; u; u = next) {
        next = u->next;
        if (u->frame.kind == FRAME_FAILURE && u->frame.channel == channel->id) {
            receive_failure(mesh, channel, u);
            unexpected_remove(mesh, u);
        }
    }
    for (struct channel *parent = m->failed_channels > 0 ? m->channels : NULL; parent;
         parent = parent->next)
        if (parent->has_failed)
            fail_if_unmade(mesh, channel, parent);
    goodbyes_came_early(m, channel);
    /* A message may have come before the channel was opened, so the first call must check. */
    atomic_store(&channel->unexpected, 1);
    pthread_mutex_unlock(&mesh->transport->lock);
}

void channel_close(struct mesh *mesh, struct channel *channel)
{
    struct messages *m = mesh->messages;

    pthread_mutex_lock(&mesh->transport->lock);
    for (struct channel **link = &m->channels; *link; link = &(*link)->next)
        if (*link == channel) {
            *link = channel->next;
            m->failed_channels -= channel->has_failed;
            m->background -= channel->has_failed;
            break;
        }
    for (struct channel **link = &m->channels_by_id[place_of_id(channel->id)]; *link;
         link = &(*link)->next_alike)
        if (*link == channel) {
            *link = channel->next_alike;
            break;
        }
    probes_forget(mesh, channel);
    m->left_channels -= channel->left != NULL;
    free(channel->left);
    note_closing(m, channel->id);
    for (struct unexpected *u = m->unexpected, *next; u; u = next) {
        next = u->next;
        if ((u->frame.channel & ~(uint64_t)1) == channel->id && !u->sender)
            unexpected_remove(mesh, u);
    }
    pthread_mutex_unlock(&mesh->transport->lock);
}
