/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_message.c - a message that nobody sends, or that nobody receives. */
#include <string.h>

#include "launcher/inspect/verdict_internal.h"
#include "runtime/types/call_signature.h"

/* The wait of the peer, if that waits in a message too and so is no answer in itself. */
static const struct waiting *wait_of_peer(const struct verdict_in_work *work,
                                          const struct waiting *wait)
{
    const struct member *peer = wait_peer(wait);

    for (int i = 0; peer && i < work->waits.count; i++)
        if (wait_is_message(&work->waits.wait[i]) && work->waits.wait[i].member->at == peer->at
            && wait_needs(wait, peer->at))
            return &work->waits.wait[i];
    return NULL;
}

/* The wait that it waits behind, at the end of the chain; itself, if it is that one. */
static const struct waiting *front_of(const struct verdict_in_work *work,
                                      const struct waiting *wait)
{
    for (int i = 0; i < work->waits.count; i++) {
        const struct waiting *next = wait_of_peer(work, wait);

        if (!next)
            return wait;
        wait = next;
    }
    return wait;
}

/* "group world: ranks 1-3 wait in recv of 8 f32 from rank 0 (tag 0) for 2.1 s at train.c:88" */
static void say_waiters(struct verdict_in_work *work, struct sentence *sentence,
                        const struct waiting *first)
{
    const struct group_snapshot *line = first->member->line;
    const struct member *peer = wait_peer(first);
    const struct group_snapshot *lines[64];
    int count = 0;
    char text[200], words[160], time[32], whom[48] = "any rank";

    for (int i = 0; i < work->waits.count; i++) {
        struct waiting *wait = &work->waits.wait[i];
        const uint64_t age = words_age(work->job, wait_call(wait)->begun_ns);

        if (wait->explained || !wait_is_with(wait, first))
            continue;
        wait->explained = 1;
        if (count < 64)
            lines[count] = wait->member->line;
        work->numbers[count++] = member_name(&work->groups, wait->view, wait->member);
        sentence->waited_ns = age > sentence->waited_ns ? age : sentence->waited_ns;
    }
    if (line->now.root >= 0) {
        const int name = peer ? member_name(&work->groups, first->view, peer) : line->now.root;

        words_ranks(&name, 1, whom, sizeof whom);
    }
    words_ranks(work->numbers, count, text, sizeof text);
    words_call(&line->now, words, sizeof words);
    words_time(sentence->waited_ns, time, sizeof time);
    memcpy(sentence->group, first->view->name, sizeof sentence->group);
    say(sentence, "group %s: %s %s in %s %s %s (tag %d)", first->view->name, text,
        count > 1 ? "wait" : "waits", words, line->now.operation == OPERATION_SEND ? "to" : "from",
        whom, line->tag);
    add(sentence, " for %s", time);
    say_where(sentence, lines, count < 64 ? count : 64);
}

static void say_behind(struct verdict_in_work *work, struct sentence *sentence,
                       const struct waiting *front)
{
    char text[200];
    int count = 0;

    for (int i = 0; i < work->waits.count; i++) {
        struct waiting *wait = &work->waits.wait[i];

        if (wait->explained || !wait_is_message(wait) || front_of(work, wait) != front)
            continue;
        wait->explained = 1;
        work->numbers[count++] = member_name(&work->groups, wait->view, wait->member);
    }
    if (count == 0)
        return;
    words_ranks(work->numbers, count, text, sizeof text);
    say(sentence, "; %s %s behind", text, count > 1 ? "wait" : "waits");
}

/* Both speak to each other: with another size, or tag, or they just pass bytes. */
static void say_pair(struct verdict_in_work *work, const struct waiting *wait)
{
    const struct group_snapshot *own = wait->member->line, *its = wait_peer(wait)->line;
    const int tags = own->tag != its->tag;
    const int sizes = own->now.count != its->now.count || own->now.dtype != its->now.dtype;
    struct sentence *sentence =
        verdict_add(work, tags || sizes ? VERDICT_MISMATCH : VERDICT_TOGETHER);

    if (!sentence)
        return;
    say_waiters(work, sentence, wait);
    say(sentence, "; rank %d is in ", member_name(&work->groups, wait->view, wait_peer(wait)));
    say_call(sentence, its, NULL);
    if (tags)
        say(sentence, ": the tags differ");
    else if (sizes)
        say(sentence, ": the sizes differ");
    for (int i = 0; i < work->waits.count; i++)
        if (work->waits.wait[i].member == wait_peer(wait))
            work->waits.wait[i].explained = 1;
}

static void say_alone(struct verdict_in_work *work, const struct waiting *wait)
{
    const struct job_snapshot *job = work->job;
    const struct group_view *view = wait->view;
    const int peer = wait_call(wait)->root, at = peer - job->base;
    struct sentence *sentence = verdict_add(work, VERDICT_MISSING);
    int blamed = 0;

    if (!sentence || !verdict_blames(work, view->count + 1))
        return;
    say_waiters(work, sentence, wait);
    for (int i = 0; i < view->count; i++) {
        const struct member *member = &view->member[i];

        if (member == wait->member || (peer >= 0 && member->line->rank != peer))
            continue;
        work->blames[blamed] = blame_rank(job, member->at, member->line, member->left, 0);
        work->blames[blamed++].rank = member_name(&work->groups, view, member);
    }
    if (blamed == 0 && peer >= 0 && view->is_world && snapshot_death_of(job, peer))
        work->blames[blamed++] = (struct blame){
            .at = -1, .rank = peer, .what = ENDED, .death = snapshot_death_of(job, peer)
        };
    else if (blamed == 0 && peer >= 0 && view->is_world && at >= 0 && at < job->ranks)
        work->blames[blamed++] = blame_rank(job, at, NULL, 0, 0);
    if (blamed == 0)
        sentence->kind = VERDICT_HOSTS;
    verdict_say_blames(work, sentence, "; ", blamed);
    if (blamed == 0)
        say(sentence, "; %s",
            job->own_memory || job->nodes > 1
                ? "that rank is not here: it ended, or is on another host (run "
                  "ctctl there)"
                : "that rank is not in the group any more");
    say_behind(work, sentence, wait);
}

void verdict_messages(struct verdict_in_work *work, const struct group_view *view)
{
    for (int i = 0; i < work->waits.count && !work->failed; i++) {
        struct waiting *wait = &work->waits.wait[i];

        if (wait->view != view || wait->explained || !wait_is_message(wait))
            continue;
        if (wait_peer(wait) && wait_peer_is_in(wait))
            say_pair(work, wait);
        else if (front_of(work, wait) == wait)
            say_alone(work, wait);
    }
    for (int i = 0; i < work->waits.count && !work->failed; i++) {
        struct waiting *wait = &work->waits.wait[i];

        /* What is left waits behind something that another sentence explains. */
        if (wait->view == view && wait_is_message(wait) && !wait->explained
            && front_of(work, wait)->view == view)
            say_alone(work, wait);
    }
}
