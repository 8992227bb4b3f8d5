/* SPDX-License-Identifier: Apache-2.0 */
/* wait_graph.c - a graph: a wait points at the waits of the ranks that it needs.
 *
 * A collective needs all members that have not begun it; a message needs its peer; a message from
 * anybody needs nobody in particular and is in no circle.  In a circle nobody can be the first to
 * move: that is certain, whatever else the processes do. */
#include "launcher/inspect/wait_graph.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/inspect/blocker.h"
#include "launcher/inspect/verdict.h"
#include "runtime/types/call_signature.h"

int waits_open(struct waits *waits, const struct groups *groups, uint64_t least_ns)
{
    const struct job_snapshot *job = groups->job;
    int most = 0;

    *waits = (struct waits){ .groups = groups };
    for (int i = 0; i < groups->count; i++)
        most += groups->view[i].in;
    if (most == 0)
        return 0;
    if (!(waits->wait = calloc((size_t)most, sizeof *waits->wait)))
        return -1;
    for (int i = 0; i < groups->count; i++)
        for (int j = 0; j < groups->view[i].in; j++) {
            const struct member *member = &groups->view[i].member[j];
            const struct group_snapshot *line = member->line;

            if (line->now.phase == CONTROL_IN && !line->moving
                && words_age(job, line->now.begun_ns) >= least_ns)
                waits->wait[waits->count++] = (struct waiting){ &groups->view[i], member, 0 };
        }
    return 0;
}

void waits_close(struct waits *waits)
{
    free(waits->wait);
    *waits = (struct waits){ .count = 0 };
}

int wait_is_with(const struct waiting *a, const struct waiting *b)
{
    const struct call_snapshot *x = wait_call(a), *y = wait_call(b);

    if (a->view != b->view || x->seq != y->seq)
        return 0;
    return x->seq > 0
           || (x->operation == y->operation && x->root == y->root && x->count == y->count
               && x->dtype == y->dtype && a->member->line->tag == b->member->line->tag);
}

const struct member *wait_peer(const struct waiting *wait)
{
    const int peer = wait_call(wait)->root;

    return wait_is_message(wait) && peer >= 0 ? member_numbered(wait->view, peer) : NULL;
}

int wait_peer_is_in(const struct waiting *wait)
{
    const struct group_snapshot *own = wait->member->line;
    const struct member *peer = wait_peer(wait);
    const struct call_snapshot *its;

    if (!peer || peer->left)
        return 0;
    its = &peer->line->now;
    return its->phase == CONTROL_IN && its->seq == 0 && its->operation != own->now.operation
           && (its->root == own->rank || (its->root < 0 && its->operation == OPERATION_RECV));
}

int wait_needs(const struct waiting *wait, int at)
{
    const struct member *member;

    if (wait_is_message(wait)) {
        member = wait_peer(wait);
        return member && member->at == at && !wait_peer_is_in(wait);
    }
    member = member_of(wait->view, at);
    return member && !member->left && member->line->begun < wait_call(wait)->seq;
}

/* ---- Circles --------------------------------------------------------------- */

struct walk {
    const struct waits *waits;
    char *colour; /* by wait: 0 new, 1 on the path, 2 leads nowhere */
    int *path;
    int length, circle; /* the path from here on is one; -1: none yet */
};

static int step(struct walk *walk, int from)
{
    const struct waits *waits = walk->waits;

    walk->colour[from] = 1;
    walk->path[walk->length++] = from;
    for (int to = 0; to < waits->count; to++) {
        if (walk->colour[to] == 2 || waits->wait[to].explained
            || !wait_needs(&waits->wait[from], waits->wait[to].member->at))
            continue;
        if (walk->colour[to] == 1) {
            for (walk->circle = 0; walk->path[walk->circle] != to;)
                walk->circle++;
            return 1;
        }
        if (step(walk, to))
            return 1;
    }
    walk->colour[from] = 2;
    walk->length--;
    return 0;
}

static void name_groups(struct sentence *sentence, const struct waits *waits, const int *circle,
                        int length)
{
    int several = 0, named = 0;

    for (int i = 1; i < length; i++)
        several |= waits->wait[circle[i]].view != waits->wait[circle[0]].view;
    say(sentence, several ? "groups " : "group ");
    for (int i = 0; i < length; i++) {
        const struct group_view *view = waits->wait[circle[i]].view;
        int before = 0;

        for (int j = 0; j < i && !before; j++)
            before = waits->wait[circle[j]].view == view;
        if (before || named == 4)
            continue;
        say(sentence, "%s%s", named++ ? ", " : "", view->name);
    }
    if (!several)
        memcpy(sentence->group, waits->wait[circle[0]].view->name, sizeof sentence->group);
}

static void add_time(struct sentence *sentence, const struct waits *waits, const int *circle,
                     int length)
{
    char time[32];

    for (int i = 0; i < length; i++) {
        const uint64_t age =
            words_age(waits->groups->job, wait_call(&waits->wait[circle[i]])->begun_ns);

        sentence->waited_ns = age > sentence->waited_ns ? age : sentence->waited_ns;
    }
    words_time(sentence->waited_ns, time, sizeof time);
    say(sentence, ": deadlock");
    add(sentence, " for %s", time);
    say(sentence, ": ");
}

/* Those that are in the call of `wait`, and with them it is explained. */
static void say_waiters(struct sentence *sentence, struct waits *waits, const struct waiting *wait)
{
    int ranks[256] = { 0 }, count = 0;
    char text[200];

    for (int i = 0; i < waits->count; i++) {
        struct waiting *other = &waits->wait[i];

        if (other != wait && (wait_is_message(wait) || !wait_is_with(other, wait)))
            continue;
        other->explained = 1;
        if (count < 256)
            ranks[count++] = member_name(waits->groups, other->view, other->member);
    }
    words_ranks(ranks, count, text, sizeof text);
    say(sentence, "%s %s in ", text, count > 1 ? "wait" : "waits");
}

static void say_circle(struct sentence *sentence, struct waits *waits, const int *circle,
                       int length)
{
    int one_group = 1;

    for (int i = 0; i < length; i++)
        one_group &= waits->wait[circle[i]].view == waits->wait[circle[0]].view;
    for (int i = 0; i < length; i++) {
        const struct waiting *wait = &waits->wait[circle[i]];
        const struct waiting *next = &waits->wait[circle[(i + 1) % length]];

        if (i == 8 && length > 9) {
            say(sentence, ", and so on over %d ranks", length);
            for (int j = i; j < length; j++)
                waits->wait[circle[j]].explained = 1;
            break;
        }
        say(sentence, i ? ", " : "");
        say_waiters(sentence, waits, wait);
        say_call(sentence, wait->member->line, one_group ? NULL : wait->view->name);
        if (length > 1 && !wait_is_message(wait))
            say(sentence, " for rank %d", member_name(waits->groups, next->view, next->member));
    }
}

static int by_number(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

/* Who waits for one of those that are explained by the sentence, and who waits for these. */
static void say_behind(struct sentence *sentence, struct waits *waits)
{
    int ranks[256], count = 0, more = 1;
    char text[200];

    while (more) {
        more = 0;
        for (int i = 0; i < waits->count; i++)
            for (int j = 0; j < waits->count && !waits->wait[i].explained; j++) {
                if (waits->wait[j].explained != 1
                    || !wait_needs(&waits->wait[i], waits->wait[j].member->at))
                    continue;
                waits->wait[i].explained = more = 1;
                if (count < 256)
                    ranks[count++] =
                        member_name(waits->groups, waits->wait[i].view, waits->wait[i].member);
            }
    }
    for (int i = 0; i < waits->count; i++)
        waits->wait[i].explained += waits->wait[i].explained == 1; /* 2: of an earlier sentence */
    if (count == 0)
        return;
    qsort(ranks, (size_t)count, sizeof *ranks, by_number);
    words_ranks(ranks, count, text, sizeof text);
    say(sentence, "; %s %s behind them", text, count > 1 ? "wait" : "waits");
}

int waits_deadlock(struct waits *waits, struct sentence *sentence)
{
    struct walk walk = { .waits = waits, .circle = -1 };
    int length = 0;

    if (waits->count == 0)
        return 0;
    walk.colour = calloc((size_t)waits->count, 1);
    walk.path = calloc((size_t)waits->count, sizeof *walk.path);
    if (!walk.colour || !walk.path) {
        free(walk.colour);
        free(walk.path);
        return -1;
    }
    for (int i = 0; i < waits->count && walk.circle < 0; i++)
        if (walk.colour[i] == 0 && !waits->wait[i].explained)
            step(&walk, i);
    if (walk.circle >= 0) {
        length = walk.length - walk.circle;
        *sentence = (struct sentence){ .kind = VERDICT_DEADLOCK };
        name_groups(sentence, waits, walk.path + walk.circle, length);
        add_time(sentence, waits, walk.path + walk.circle, length);
        say_circle(sentence, waits, walk.path + walk.circle, length);
        if (length == 1)
            say(sentence, ", that is from itself");
        say_behind(sentence, waits);
    }
    free(walk.colour);
    free(walk.path);
    return length > 0;
}
