/* SPDX-License-Identifier: Apache-2.0 */
/* blocker.c - a rank that keeps others waiting, in words.
 *
 * What is certain comes first: it ended; it is stopped; it is in another call; and only then what
 * its process seems to do. */
#include "launcher/inspect/blocker.h"

#include <stdio.h>
#include <string.h>

#include "runtime/types/call_signature.h"

#define AT_ONCE 1024 /* ranks in one list */

static int is_message(const struct call_snapshot *call)
{
    return call->operation == OPERATION_SEND || call->operation == OPERATION_RECV;
}

static int is_gone(const struct process_snapshot *process)
{
    return process->state == 0 || strchr("ZXx", process->state);
}

int all_stopped(const struct job_snapshot *job)
{
    int stopped = 0;

    for (int i = 0; i < job->ranks; i++) {
        if (job->rank[i].process.state == 'T')
            stopped++;
        else if (!is_gone(&job->rank[i].process))
            return 0;
    }
    return stopped > 1;
}

/* A process that is gone had said goodbye before, or a program without groups had nothing to say.
 */
static int has_left(const struct rank_snapshot *rank, const struct group_snapshot *line, int left)
{
    return rank->state == CONTROL_LEFT || left || (!line && rank->state != CONTROL_INIT);
}

/* The call that the rank is in, but for number seq of `line`; the oldest, since younger ones may
 * run beside it. */
static const struct group_snapshot *call_elsewhere(const struct rank_snapshot *rank,
                                                   const struct group_snapshot *line, uint64_t seq)
{
    const struct group_snapshot *found = NULL;

    for (int i = 0; i < CONTROL_GROUPS; i++) {
        const struct group_snapshot *group = &rank->group[i];

        if (group->id == 0 || group->moving || group->now.phase != CONTROL_IN
            || (group == line && seq > 0 && group->now.seq == seq))
            continue;
        if (!found || group->now.begun_ns < found->now.begun_ns)
            found = group;
    }
    return found;
}

struct blame blame_rank(const struct job_snapshot *job, int at, const struct group_snapshot *line,
                        int left, uint64_t seq)
{
    const struct rank_snapshot *rank = &job->rank[at];
    const char state = rank->process.state;
    struct blame blame = { .at = at, .rank = rank->rank, .last = line ? line->begun : 0 };

    blame.line = call_elsewhere(rank, line, seq);
    blame.death = job->own_memory ? NULL : snapshot_death_of(job, rank->rank);
    if (blame.death)
        blame.what = ENDED;
    else if (rank->process.pid == 0)
        blame.what = NOT_STARTED;
    else if (is_gone(&rank->process))
        blame.what = has_left(rank, line, left) ? LEFT : DIED;
    else if (state == 't')
        blame.what = TRACED;
    else if (state == 'T' && !all_stopped(job))
        blame.what = STOPPED;
    else if (line && !left && seq > 0 && line->now.seq == seq && line->now.phase == CONTROL_IN)
        blame.what = PRESENT;
    else if (blame.line)
        blame.what =
            blame.line == line && seq > 0 && line->now.seq > 0 && !left ? BEHIND : ELSEWHERE;
    else if (*rank->waiting_for && rank->state != CONTROL_INIT)
        blame.what = AT_THE_STORE;
    else if (left || rank->state == CONTROL_LEFT)
        blame.what = LEFT;
    else if (line)
        blame.what = line->now.phase == CONTROL_FAILED ? FAILED : IDLE;
    else if (rank->state == CONTROL_INIT)
        blame.what = IN_INIT;
    else
        blame.what = rank->state == CONTROL_OUTSIDE                       ? OUTSIDE
                     : rank->state == CONTROL_STARTED && !job->own_memory ? NOT_BEGUN
                                                                          : NOT_IN_GROUP;
    if (blame.what == FAILED)
        blame.line = line;
    return blame;
}

/* ---- In words -------------------------------------------------------------- */

static void since(const struct blame *blame, char *text, size_t size)
{
    if (blame->last > 0)
        snprintf(text, size, "after #%llu", (unsigned long long)blame->last);
    else
        snprintf(text, size, "before its first call");
}

void say_where(struct sentence *sentence, const struct group_snapshot *const *lines, int count)
{
    const char *said[2];
    int places = 0;

    for (int i = 0; i < count; i++) {
        const char *where = lines[i]->where;

        if (!*where || (places > 0 && !strcmp(where, said[0]))
            || (places > 1 && !strcmp(where, said[1])))
            continue;
        if (places == 2) {
            say(sentence, " and elsewhere");
            return;
        }
        say(sentence, "%s%s", places ? " and " : " at ", where);
        said[places++] = where;
    }
}

void say_call(struct sentence *sentence, const struct group_snapshot *line, const char *group)
{
    char call[160];

    words_call(&line->now, call, sizeof call);
    say(sentence, "%s", call);
    if (is_message(&line->now) && line->now.root < 0)
        say(sentence, " from any rank (tag %d)", line->tag);
    else if (is_message(&line->now))
        say(sentence, " %s rank %d (tag %d)", line->now.operation == OPERATION_SEND ? "to" : "from",
            line->now.root, line->tag);
    if (group)
        say(sentence, " of group %s", group);
    say_where(sentence, &line, 1);
}

static void say_end(struct sentence *sentence, const struct blame *blame)
{
    const struct death_snapshot *death = blame->death;
    char how[64], when[64];

    since(blame, when, sizeof when);
    words_death(death, how, sizeof how);
    say(sentence, "%s", how);
    if (blame->at >= 0 || blame->last > 0) /* else its host told nothing of its calls */
        say(sentence, " %s", when);
    say(sentence, " (pid %d%s%s)", death->pid, *death->host ? " on " : "", death->host);
}

static void say_died(struct sentence *sentence, const struct job_snapshot *job,
                     const struct blame *blame)
{
    const struct rank_snapshot *rank = &job->rank[blame->at];
    const int wrapped = rank->wrapper.state && !is_gone(&rank->wrapper);
    char when[64];

    since(blame, when, sizeof when);
    say(sentence, "died silently %s: its process (pid %d) is gone", when, (int)rank->process.pid);
    if (wrapped)
        say(sentence, ", what ctrun started lives on (%s, pid %d)", rank->wrapper.name,
            (int)rank->wrapper.pid);
}

/* What one of them does, with words that hold for all of a kind. */
static void say_what(struct sentence *sentence, const struct job_snapshot *job,
                     const struct blame *blame, int several)
{
    const char *is = several ? "are" : "is", *has = several ? "have" : "has";
    const struct rank_snapshot *rank = blame->at >= 0 ? &job->rank[blame->at] : NULL;
    char when[64], call[160];

    since(blame, when, sizeof when);
    switch (blame->what) {
    case PRESENT:
        say(sentence, "%s in it", is);
        break;
    case ENDED:
        say_end(sentence, blame);
        break;
    case DIED:
        say_died(sentence, job, blame);
        break;
    case STOPPED:
        say(sentence, "%s stopped %s: kill -CONT lets %s go on", is,
            blame->in_it ? "in that call" : when, several ? "them" : "it");
        break;
    case TRACED:
        say(sentence, "%s held %s by a debugger (pid %d)", is, blame->in_it ? "in that call" : when,
            (int)rank->process.tracer);
        break;
    case LEFT:
        say(sentence, "%s left the group %s", has, when);
        break;
    case ELSEWHERE:
        say(sentence, "%s ", several ? "wait in" : "waits in");
        say_call(sentence, blame->line, blame->line->name);
        break;
    case BEHIND:
        say(sentence, "%s still in ", is);
        say_call(sentence, blame->line, NULL);
        break;
    case AT_THE_STORE:
        say(sentence, "%s for %s", several ? "wait" : "waits", rank->waiting_for);
        break;
    case FAILED:
        words_call(&blame->line->now, call, sizeof call);
        say(sentence, "%s no call since %s failed there", several ? "are in" : "is in", call);
        break;
    case NOT_STARTED:
        say(sentence, "%s not been started yet", has);
        break;
    case NOT_BEGUN:
        say(sentence, "%s not called ct_init_process_group()", has);
        break;
    case OUTSIDE:
        say(sentence, "%s without a group since ct_init_process_group() failed", is);
        break;
    case IN_INIT:
        say(sentence, "%s in ct_init_process_group()", is);
        break;
    case NOT_IN_GROUP:
        say(sentence, "%s no such group (not made yet, or destroyed)", has);
        break;
    case IDLE:
        if (blame->last > 0)
            say(sentence, "%s in no call since #%llu", is, (unsigned long long)blame->last);
        else
            say(sentence, "%s made no call yet", has);
        break;
    }
}

/* Are they said together?  A pid, a place of its own makes a sentence of its own. */
static int is_alike(const struct job_snapshot *job, const struct blame *a, const struct blame *b)
{
    if (a->what != b->what || a->last != b->last || a->in_it != b->in_it)
        return 0;
    if (a->what == ENDED || a->what == DIED || a->what == TRACED)
        return 0;
    if (a->what == AT_THE_STORE)
        return !strcmp(job->rank[a->at].waiting_for, job->rank[b->at].waiting_for);
    if (a->what == ELSEWHERE || a->what == BEHIND || a->what == FAILED)
        return a->line->id == b->line->id && a->line->now.seq == b->line->now.seq
               && a->line->now.operation == b->line->now.operation
               && a->line->now.root == b->line->now.root && !strcmp(a->line->where, b->line->where);
    return 1;
}

/* ": it sleeps (pid 4310, S)", or of several the pids of the first ones. */
static void add_processes(struct sentence *sentence, const struct job_snapshot *job,
                          const struct blame *const *alike, int count)
{
    const enum absence what = alike[0]->what;
    const char *host = job->nodes > 1 ? job->host : "";
    const struct process_snapshot *first;
    int same = 1;

    if (what == ENDED || what == DIED || what == NOT_STARTED)
        return;
    first = &job->rank[alike[0]->at].process;
    for (int i = 1; i < count; i++) {
        const struct process_snapshot *other = &job->rank[alike[i]->at].process;

        same = same && other->state == first->state && !strcmp(other->waits_in, first->waits_in);
    }
    if (same
        && (what == IDLE || what == LEFT || what == NOT_BEGUN || what == FAILED
            || what == NOT_IN_GROUP || what == OUTSIDE))
        add(sentence, ": %s", words_doing(first, count > 1));
    add(sentence, count > 1 ? " (pids " : " (pid ");
    for (int i = 0; i < count && i < 4; i++)
        add(sentence, "%s%d", i ? ", " : "", (int)job->rank[alike[i]->at].process.pid);
    add(sentence, "%s%s%s", count > 4 ? ", ..." : "", *host ? " on " : "", host);
    if (same)
        add(sentence, ", %c", first->state);
    add(sentence, ")");
}

static void say_alike(struct sentence *sentence, const struct job_snapshot *job,
                      const struct blame *const *alike, int count)
{
    int numbers[AT_ONCE];
    char ranks[200];

    for (int i = 0; i < count; i++)
        numbers[i] = alike[i]->rank;
    words_ranks(numbers, count, ranks, sizeof ranks);
    say(sentence, "%s ", ranks);
    say_what(sentence, job, alike[0], count > 1);
    add_processes(sentence, job, alike, count);
}

void blame_say(struct sentence *sentence, const struct job_snapshot *job, const char *gap,
               struct blame *blames, int count)
{
    for (int i = 0; i < count; i++) {
        const struct blame *alike[AT_ONCE];
        int found = 0;

        if (blames[i].said || blames[i].what == PRESENT)
            continue;
        for (int j = i; j < count && found < AT_ONCE; j++)
            if (j == i || (!blames[j].said && is_alike(job, &blames[i], &blames[j]))) {
                alike[found++] = &blames[j];
                blames[j].said = 1;
            }
        say(sentence, "%s", gap);
        say_alike(sentence, job, alike, found);
        gap = "; ";
    }
}
