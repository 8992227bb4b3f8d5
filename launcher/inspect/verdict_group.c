/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_group.c - the sentence about the collective call that members of a group wait in.
 *
 * It is about the newest call: who is still in an older one keeps the others waiting as anybody
 * does who has not come.  Members are looked for among the lines; of the world it is also known who
 * has no line. */
#include <stdio.h>
#include <string.h>

#include "launcher/inspect/verdict_internal.h"
#include "runtime/reduction/combine.h"

/* The waits in the group's newest call: the first of them; NULL: none that is not explained. */
static const struct waiting *newest(const struct verdict_in_work *work,
                                    const struct group_view *view)
{
    const struct waiting *found = NULL;

    for (int i = 0; i < work->waits.count; i++) {
        const struct waiting *wait = &work->waits.wait[i];

        if (wait->view == view && !wait_is_message(wait)
            && (!found || wait_call(wait)->seq > wait_call(found)->seq))
            found = wait;
    }
    return found && !found->explained ? found : NULL;
}

static int same_call(const struct call_snapshot *a, const struct call_snapshot *b)
{
    return a->operation == b->operation && a->count == b->count && a->dtype == b->dtype
           && a->op == b->op && a->root == b->root;
}

/* "make different calls", "name different roots" ... */
static const char *difference(const struct call_snapshot *a, const struct call_snapshot *b)
{
    return a->operation != b->operation ? "make different calls"
           : a->root != b->root         ? "name different roots"
           : a->dtype != b->dtype       ? "give different dtypes"
           : a->count != b->count       ? "give different sizes"
                                        : "name different ops";
}

/* ---- Not the same call ------------------------------------------------------ */

/* Those whose call number seq was the same as `model`, as "ranks 0-2 are in ...": how many. */
static int say_side(struct verdict_in_work *work, struct sentence *sentence,
                    const struct group_view *view, const struct call_snapshot *model,
                    const char *gap)
{
    const struct group_snapshot *lines[64];
    int count = 0, here = 0;
    char text[200], call[160];

    for (int i = 0; i < view->in; i++) {
        const struct member *member = &view->member[i];
        const struct call_snapshot *its = member_call(&work->groups, member, model->seq);

        if (!its || !same_call(its, model))
            continue;
        if (member_is_in(member, model->seq) && here < 64)
            lines[here++] = member->line;
        work->mentioned[member->at] = 1;
        work->numbers[count++] = member_name(&work->groups, view, member);
    }
    words_ranks(work->numbers, count, text, sizeof text);
    words_call(model, call, sizeof call);
    say(sentence, "%s%s %s %s", gap, text, here > 0 ? count > 1 ? "are in" : "is in" : "made",
        call);
    say_where(sentence, lines, here);
    if (here == 0)
        say(sentence, " and went on");
    return count;
}

/* 1: members disagree, and the sentence says it. */
static int say_mismatch(struct verdict_in_work *work, const struct group_view *view,
                        const struct waiting *wait, uint64_t waited_ns)
{
    const struct call_snapshot *models[4] = { wait_call(wait) };
    struct sentence *sentence;
    int sides = 1;
    char time[32];

    for (int i = 0; i < view->in && sides < 4; i++) {
        const struct call_snapshot *its =
            member_call(&work->groups, &view->member[i], models[0]->seq);
        int known = !its;

        for (int j = 0; j < sides && !known; j++)
            known = same_call(its, models[j]);
        if (!known)
            models[sides++] = its;
    }
    if (sides == 1 || !(sentence = verdict_add(work, VERDICT_MISMATCH)))
        return 0;
    memcpy(sentence->group, view->name, sizeof sentence->group);
    sentence->waited_ns = waited_ns;
    words_time(waited_ns, time, sizeof time);
    say(sentence, "group %s: the ranks %s", view->name, difference(models[0], models[1]));
    for (int i = 0; i < sides; i++) {
        say_side(work, sentence, view, models[i], i ? "; " : ": ");
        if (i == 0)
            add(sentence, " for %s", time);
    }
    return 1;
}

/* ---- Who is missing --------------------------------------------------------- */

struct missing {
    int blamed; /* in work->blames */
    int unseen; /* without ctrun: ranks of which nothing is here */
    int first_unseen;
    int remote;  /* on other hosts, and not dead */
    int unknown; /* members of a group that is not the world, of which nothing is here */
};

static int is_held(enum absence what)
{
    return what == STOPPED || what == TRACED || what == DIED || what == ENDED;
}

/* Is there one in the call that could go on?  Where all of them are stopped, they still wait for
 * who is not in it. */
static int somebody_goes_on(const struct job_snapshot *job, const struct group_view *view,
                            uint64_t seq)
{
    for (int i = 0; i < view->in; i++) {
        const struct member *member = &view->member[i];

        if (member_is_in(member, seq)
            && !is_held(blame_rank(job, member->at, member->line, 0, seq).what))
            return 1;
    }
    return 0;
}

static void blame_members(struct verdict_in_work *work, const struct group_view *view, uint64_t seq,
                          struct missing *missing)
{
    const int held = somebody_goes_on(work->job, view, seq);

    for (int i = 0; i < view->count; i++) {
        const struct member *member = &view->member[i];
        const int is_in = member_is_in(member, seq);
        struct blame blame;

        if (!member->left && member->line->begun >= seq && !is_in
            && member->line->now.phase != CONTROL_FAILED)
            continue; /* done with it */
        blame = blame_rank(work->job, member->at, member->line, member->left, seq);
        blame.rank = member_name(&work->groups, view, member);
        blame.in_it = is_in;
        if (is_in && !(is_held(blame.what) && held))
            continue;
        if (!member->left && member->line->begun >= seq && !is_in && blame.what != FAILED)
            continue;
        work->blames[missing->blamed++] = blame;
    }
}

/* The dead of other hosts left word of their groups; NULL: not of this one. */
static const struct control_tomb *tomb_of(const struct death_snapshot *death,
                                          const struct group_view *view)
{
    for (int i = 0; i < death->tombs; i++)
        if (death->tomb[i].group == view->id)
            return &death->tomb[i];
    return NULL;
}

static struct blame blame_tomb(const struct death_snapshot *death, const struct group_view *view)
{
    const struct control_tomb *tomb = tomb_of(death, view);

    return (struct blame){
        .at = -1, .rank = death->rank, .what = ENDED, .death = death, .last = tomb ? tomb->begun : 0
    };
}

/* Members of the world without a line. */
static void blame_others(struct verdict_in_work *work, const struct group_view *view, uint64_t seq,
                         struct missing *missing)
{
    const struct job_snapshot *job = work->job;

    for (int rank = 0; rank < view->size; rank++) {
        const int at = rank - job->base;
        const struct death_snapshot *death;

        if (member_numbered(view, rank))
            continue;
        if (job->own_memory) {
            missing->first_unseen = missing->unseen++ ? missing->first_unseen : rank;
        } else if (at >= 0 && at < job->ranks) {
            work->blames[missing->blamed++] = blame_rank(job, at, NULL, 0, 0);
        } else if ((death = snapshot_death_of(job, rank))) {
            if (tomb_of(death, view) && tomb_of(death, view)->done >= seq)
                continue;
            work->blames[missing->blamed++] = blame_tomb(death, view);
        } else {
            missing->remote++;
        }
    }
}

/* Members of another group that have no line here. */
static void blame_dead(struct verdict_in_work *work, const struct group_view *view, uint64_t seq,
                       struct missing *missing)
{
    const struct job_snapshot *job = work->job;

    missing->unknown = view->size - view->count;
    for (int i = 0; i < job->deaths && missing->unknown > 0; i++) {
        const struct death_snapshot *death = &job->death[i];

        if ((death->rank >= job->base && death->rank < job->base + job->local)
            || !tomb_of(death, view))
            continue;
        missing->unknown--;
        if (tomb_of(death, view)->done < seq)
            work->blames[missing->blamed++] = blame_tomb(death, view);
    }
}

static void say_unseen(const struct verdict_in_work *work, struct sentence *sentence,
                       const struct missing *missing)
{
    const struct job_snapshot *job = work->job;

    if (missing->unseen == 1)
        say(sentence,
            "; rank %d is not to be seen here: it ended, has not come yet, or is on another host",
            missing->first_unseen);
    else if (missing->unseen > 1)
        say(sentence,
            "; rank %d and %d more are not to be seen here: they ended, have not come yet, or "
            "are on other hosts",
            missing->first_unseen, missing->unseen - 1);
    if (missing->unknown > 0)
        say(sentence, "; %d more of its %s %s", missing->unknown,
            missing->unknown == 1 ? "ranks is" : "ranks are",
            job->nodes > 1 || job->own_memory
                ? "on other hosts (run ctctl there), or not in it any "
                  "more"
                : "not in it any more");
}

/* It is in the call, and is said to be what the others wait for. */
static int is_blamed(const struct verdict_in_work *work, int blamed, int at)
{
    for (int i = 0; i < blamed; i++)
        if (work->blames[i].in_it && work->blames[i].at == at)
            return 1;
    return 0;
}

/* "ranks 0-2 wait in all_reduce #1842 (1024 f32, sum) for 2.1 s at train.c:88 (step)" */
static uint64_t say_waiters(struct verdict_in_work *work, struct sentence *sentence,
                            const struct group_view *view, const struct call_snapshot *call,
                            int blamed)
{
    const struct group_snapshot *lines[64];
    uint64_t oldest = 0;
    int count = 0;
    char text[200], words[160], time[32];

    for (int i = 0; i < view->in; i++) {
        const struct member *member = &view->member[i];
        const uint64_t age = words_age(work->job, member->line->now.begun_ns);

        if (!member_is_in(member, call->seq) || is_blamed(work, blamed, member->at))
            continue;
        if (count < 64)
            lines[count] = member->line;
        work->numbers[count++] = member_name(&work->groups, view, member);
        if (member->line->now.seq == call->seq && age > oldest)
            oldest = age;
    }
    words_ranks(work->numbers, count, text, sizeof text);
    words_call(call, words, sizeof words);
    words_time(oldest, time, sizeof time);
    sentence->waited_ns = oldest;
    say(sentence, "group %s: %s %s in %s", view->name, text, count > 1 ? "wait" : "waits", words);
    add(sentence, " for %s", time);
    say_where(sentence, lines, count < 64 ? count : 64);
    return oldest;
}

/* When the last of those that are in it came. */
static uint64_t newest_age(const struct verdict_in_work *work, const struct group_view *view,
                           uint64_t seq)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < view->in; i++) {
        const uint64_t age = words_age(work->job, view->member[i].line->now.begun_ns);

        if (member_is_in(&view->member[i], seq) && age < least)
            least = age;
    }
    return least;
}

void verdict_group(struct verdict_in_work *work, const struct group_view *view)
{
    const struct waiting *wait = newest(work, view);
    const struct job_snapshot *job = work->job;
    struct missing missing = { 0 };
    struct sentence *sentence;

    if (!wait || say_mismatch(work, view, wait, words_age(job, wait_call(wait)->begun_ns))
        || !verdict_blames(work, view->count + job->ranks + job->deaths))
        return;
    blame_members(work, view, wait_call(wait)->seq, &missing);
    if (view->is_world)
        blame_others(work, view, wait_call(wait)->seq, &missing);
    else
        blame_dead(work, view, wait_call(wait)->seq, &missing);
    if (missing.blamed + missing.unseen + missing.remote + missing.unknown == 0
        && newest_age(work, view, wait_call(wait)->seq) < work->least_ns)
        return; /* the last one came just now */
    sentence =
        verdict_add(work, missing.blamed                                      ? VERDICT_MISSING
                          : missing.unseen + missing.remote + missing.unknown ? VERDICT_HOSTS
                                                                              : VERDICT_TOGETHER);
    if (!sentence)
        return;
    memcpy(sentence->group, view->name, sizeof sentence->group);
    say_waiters(work, sentence, view, wait_call(wait), missing.blamed);
    verdict_say_blames(work, sentence, "; ", missing.blamed);
    say_unseen(work, sentence, &missing);
    if (missing.remote > 0)
        verdict_say_other_hosts(work, sentence);
    if (sentence->kind == VERDICT_TOGETHER)
        say(sentence, "; nobody is missing");
}
