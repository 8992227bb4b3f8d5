/* SPDX-License-Identifier: Apache-2.0 */
/* group_member_death.c - what the death of a member means to a group.
 *
 * Not everything ends: a call that the dead had finished before needs nothing more of it, and
 * a survivor that is late in that call still succeeds.  How far the dead had come stands
 * in its page, if it was on this host, else in the word that its ctrun sent.  From the next call
 * on the group is broken, with the same cause on all ranks, until ct_shrink_group().
 *
 * The death may come while a call starts: who starts notes the call, then looks for a loss;
 * who tells of the loss notes it, then looks for a call.  One of them sees the other. */
#include "runtime/messaging/death_notice.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "runtime/group/group.h"
#include "runtime/messaging/messaging_internal.h"
#include "runtime/util/clock.h"

/* Between two looks at what the other ranks wrote.  The pause doubles each time: on a busy host the
 * ranks that wait here take the processor on which ctrun would write its word. */
#define FIRST_GLANCE_MS 2
#define LAST_GLANCE_MS 50

static const struct control_group *line_of(const struct control_rank *page, uint64_t id)
{
    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (atomic_load(&page->groups[i].id) == id)
            return &page->groups[i];
    return NULL;
}

/* 1: it had the group; *done is its last finished call.  0: it had left it, or never made it. */
static int progress_of(const ct_group *g, const struct control_death *death, uint64_t *done)
{
    const struct control *control = &g->mesh->control;
    const int local = death->rank - control->base;
    const struct control_group *line;

    *done = 0;
    if (!g->record.line)
        return 1; /* not recorded: nothing is known to be finished */
    if (local >= 0 && local < control->local) {
        line = line_of(control_rank_at(control->head, local), atomic_load(&g->record.line->id));
        *done = line ? atomic_load_explicit(&line->done, memory_order_acquire) : 0;
        return line != NULL;
    }
    for (int i = 0; i < death->tombs && i < CONTROL_TOMBS; i++)
        if (death->tomb[i].group == atomic_load(&g->record.line->id)) {
            *done = death->tomb[i].done;
            return 1;
        }
    return death->how == CONTROL_HOST_LOST || death->tombs == CONTROL_TOMBS;
}

static ct_status say_loss(ct_group *g)
{
    const int member = atomic_load(&g->lost) - 1;
    char words[256];

    mesh_death_words(g->mesh, g->ranks[member], words, sizeof words);
    return ct_fail(CT_ERR_PEER, "%s", words);
}

/* Who ends because a call failed is not the cause: that was told before its death was. */
static void break_for_loss(ct_group *g)
{
    group_look(g);
    if (atomic_load(&g->later) && atomic_load(&g->later) <= atomic_load(&g->begun))
        group_break_later(g);
    if (atomic_load(&g->broken) == CT_OK)
        group_break_at(g, say_loss(g), atomic_load(&g->lost_after) + 1);
}

/* Of several dead the one that was least far counts: nobody can finish what it had not. */
static void lose(ct_group *g, int member)
{
    const struct control_death *death = mesh_death(g->mesh, g->ranks[member]);
    uint64_t done;

    if (!g->member || !death || !progress_of(g, death, &done))
        return;
    pthread_mutex_lock(&g->broken_lock);
    if (!atomic_load(&g->lost) || done < atomic_load(&g->lost_after)) {
        atomic_store(&g->lost_after, done);
        atomic_store(&g->lost, member + 1);
    }
    pthread_mutex_unlock(&g->broken_lock);
    atomic_store(&g->halted, 1);
    if (atomic_load(&g->running) > atomic_load(&g->lost_after))
        break_for_loss(g);
    else
        bell_ring(g->mesh->waiter.bell, g->mesh->waiter.event_fd);
}

void group_lose(void *arg, int peer)
{
    ct_group *root = arg;

    pthread_mutex_lock(root->children);
    for (ct_group *g = root; g; g = g->next)
        for (int i = 0; i < g->size; i++)
            if (g->ranks[i] == peer)
                lose(g, i);
    pthread_mutex_unlock(root->children);
}

void group_look_for_lost(ct_group *g)
{
    for (int i = 0; i < g->size; i++)
        if (mesh_death(g->mesh, g->ranks[i]))
            lose(g, i);
}

ct_status group_begin(ct_group *g, uint64_t seq)
{
    ct_status status;

    mesh_look_for_news(g->mesh);
    if (seq) {
        atomic_store(&g->running, seq);
        atomic_store(&g->begun, seq);
    }
    if (atomic_load(&g->lost) && seq > atomic_load(&g->lost_after))
        break_for_loss(g);
    if (atomic_load(&g->later) && (seq == 0 || seq >= atomic_load(&g->later)))
        group_break_later(g);
    status = group_check(g);
    if (status != CT_OK && seq)
        group_end(g);
    return status;
}

/* Of members whose end was seen ctrun may still tell.  One that destroyed the group lives. */
static void wait_for_word(ct_group *g)
{
    const int64_t deadline = mesh_word_due(g->mesh, g->ranks, g->size);
    int glance_ms = FIRST_GLANCE_MS;

    for (;;) {
        const uint32_t heard = atomic_load(&g->mesh->control.head->news);

        mesh_look_for_news(g->mesh);
        messages_look(g->mesh);
        group_look(g);
        if (atomic_load(&g->broken) != CT_OK || atomic_load(&g->lost) || atomic_load(&g->later)
            || clock_ms() >= deadline)
            return;
        control_sleep(&g->mesh->control, heard, glance_ms);
        glance_ms = 2 * glance_ms < LAST_GLANCE_MS ? 2 * glance_ms : LAST_GLANCE_MS;
    }
}

/* A rank that destroys its group in the middle of a call mostly does so because another rank died.
 * Without ctrun this rank is not told which one.  So it adds to the current sentence each member on
 * its own host whose process has ended and that sent no goodbye. */
static void name_the_ended(ct_group *g, ct_status status)
{
    struct mesh *mesh = g->mesh;
    char sentence[1024], name[160];

    for (int i = 0; i < g->size; i++) {
        const int peer = g->ranks[i], local = mesh->node.base ? mesh->peers[peer].local : -1;

        if (peer == mesh->rank || local < 0 || mesh->transport->wires[peer].left
            || !node_peer_gone(&mesh->node, local))
            continue;
        mesh_peer_name(mesh, peer, name, sizeof name);
        snprintf(sentence, sizeof sentence, "%s", ct_last_error());
        if (!strstr(sentence, name))
            ct_fail(status, "%s; %s has ended without destroying the group", sentence, name);
    }
}

/* A mismatch that this rank found itself it can explain best, and its own limit of time. */
ct_status group_cause(ct_group *g, ct_status status)
{
    if (status == CT_OK || status == CT_ERR_MISMATCH || status == CT_ERR_TIMEOUT)
        return status;
    if (status == CT_ERR_PEER && g->mesh->control.worker >= 0)
        wait_for_word(g);
    if (atomic_load(&g->broken) == CT_OK && atomic_load(&g->lost))
        break_for_loss(g);
    group_look(g);
    if (atomic_load(&g->later) && !atomic_load(&g->running)) /* a message: it has no number */
        group_break_later(g);
    if (atomic_load(&g->broken) != CT_OK)
        return group_quote(g);
    if (status == CT_ERR_PEER && g->mesh->control.worker < 0 && atomic_load(&g->running))
        name_the_ended(g, status);
    return status;
}
