/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - which sentences a job gets.
 *
 * Ranks that wait for each other come first, since nothing else about their groups matters then.
 * Each group that is left has one sentence about its newest call (verdict_group.c), and one for
 * each message that nobody answers (verdict_message.c).  Then what has no group: ranks that wait
 * in ct_init_process_group(), or at the store; and processes that are stopped or gone though
 * nobody waits for them yet, which is also all that can be said of programs without libct. */
#include "launcher/inspect/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/inspect/verdict_internal.h"

struct sentence *verdict_add(struct verdict_in_work *work, enum verdict_kind kind)
{
    struct verdict *verdict = work->verdict;
    struct sentence *more = realloc(verdict->sentence, (size_t)(verdict->count + 1) * sizeof *more);

    if (!more) {
        work->failed = 1;
        return NULL;
    }
    verdict->sentence = more;
    more[verdict->count] = (struct sentence){ .kind = kind };
    return &more[verdict->count++];
}

struct blame *verdict_blames(struct verdict_in_work *work, int count)
{
    if (count > work->room) {
        struct blame *more = realloc(work->blames, (size_t)count * sizeof *more);

        if (!more) {
            work->failed = 1;
            return NULL;
        }
        work->blames = more;
        work->room = count;
    }
    return work->blames;
}

void verdict_say_blames(struct verdict_in_work *work, struct sentence *sentence, const char *gap,
                        int count)
{
    blame_say(sentence, work->job, gap, work->blames, count);
    for (int i = 0; i < count; i++)
        if (work->blames[i].at >= 0 && work->blames[i].what != PRESENT)
            work->mentioned[work->blames[i].at] = 1;
}

void verdict_say_other_hosts(struct verdict_in_work *work, struct sentence *sentence)
{
    const struct job_snapshot *job = work->job;
    const int last = job->base + job->local;
    char text[96];
    int ranks[2];

    if (job->own_memory || job->world <= job->local)
        return;
    say(sentence, "; ");
    for (int i = 0; i < 2; i++) {
        const int from = i ? last : 0, to = i ? job->world : job->base;

        if (from >= to)
            continue;
        ranks[0] = from;
        words_ranks(ranks, 1, text, sizeof text);
        if (to - from == 1)
            say(sentence, "%s%s", text, i == 0 && last < job->world ? ", " : "");
        else
            say(sentence, "ranks %d-%d%s", from, to - 1, i == 0 && last < job->world ? ", " : "");
    }
    say(sentence, "%s",
        job->world - job->local == 1 ? " is on another host: run ctctl there"
                                     : " are on other hosts: run ctctl there");
}

/* ---- Without a group ------------------------------------------------------- */

/* A rank in init that can't come any further by itself. */
static int is_held(const struct blame *blame)
{
    return blame->what == STOPPED || blame->what == TRACED || blame->what == ENDED
           || blame->what == DIED;
}

/* Sorts the ranks into those that wait, in work->numbers, and those that are to blame. */
static int sort_init(struct verdict_in_work *work, int *blamed, uint64_t *oldest,
                     const char **waiting_for)
{
    const struct job_snapshot *job = work->job;
    int count = 0;

    for (int i = 0; i < job->ranks; i++) {
        const struct rank_snapshot *rank = &job->rank[i];
        const uint64_t age = words_age(job, rank->since_ns);
        struct blame blame = blame_rank(job, i, NULL, 0, 0);

        blame.in_it = rank->state == CONTROL_INIT;
        if (blame.what == NOT_STARTED || blame.what == NOT_BEGUN || blame.what == OUTSIDE
            || blame.what == LEFT || (is_held(&blame) && rank->state <= CONTROL_INIT)) {
            work->blames[(*blamed)++] = blame;
        } else if (blame.in_it) {
            if (count > 0 && strcmp(*waiting_for, rank->waiting_for) != 0)
                *waiting_for = ""; /* each has come so far */
            else
                *waiting_for = rank->waiting_for;
            work->numbers[count++] = rank->rank;
            *oldest = age > *oldest ? age : *oldest;
        }
    }
    return count;
}

static void say_init(struct verdict_in_work *work)
{
    const char *waiting_for = "";
    struct sentence *sentence;
    char text[200], time[32];
    uint64_t oldest = 0;
    int blamed = 0, count;

    if (!verdict_blames(work, work->job->ranks))
        return;
    count = sort_init(work, &blamed, &oldest, &waiting_for);
    if (count == 0 || oldest < work->least_ns || !(sentence = verdict_add(work, VERDICT_INIT)))
        return;
    words_ranks(work->numbers, count, text, sizeof text);
    words_time(oldest, time, sizeof time);
    sentence->waited_ns = oldest;
    say(sentence, "%s %s in ct_init_process_group()", text, count > 1 ? "wait" : "waits");
    add(sentence, " for %s", time);
    if (*waiting_for)
        add(sentence, " (%s)", waiting_for);
    verdict_say_blames(work, sentence, "; ", blamed);
    verdict_say_other_hosts(work, sentence);
}

/* Ranks that noted the same words together. */
static void say_waiting(struct verdict_in_work *work, int first)
{
    const struct job_snapshot *job = work->job;
    const char *words = job->rank[first].waiting_for;
    struct sentence *sentence = verdict_add(work, VERDICT_STORE);
    uint64_t oldest = 0;
    char text[200], time[32];
    int count = 0;

    for (int i = first; sentence && i < job->ranks; i++) {
        const struct rank_snapshot *rank = &job->rank[i];
        const uint64_t age = words_age(job, rank->waiting_since_ns);

        if (work->mentioned[i] || strcmp(rank->waiting_for, words) != 0 || age < work->least_ns)
            continue;
        work->mentioned[i] = 1;
        work->numbers[count++] = rank->rank;
        oldest = age > oldest ? age : oldest;
    }
    if (!sentence)
        return;
    words_ranks(work->numbers, count, text, sizeof text);
    words_time(oldest, time, sizeof time);
    sentence->waited_ns = oldest;
    say(sentence, "%s %s for %s", text, count > 1 ? "wait" : "waits", words);
    add(sentence, " for %s", time);
}

static void say_processes(struct verdict_in_work *work)
{
    const struct job_snapshot *job = work->job;
    int blamed = 0;

    if (all_stopped(job)) {
        struct sentence *sentence = verdict_add(work, VERDICT_PROCESS);

        if (sentence)
            say(sentence, "all %d ranks here are stopped (state T): kill -CONT lets them go on",
                job->ranks);
    }
    if (job->launcher_state == 'T' && !job->own_memory) {
        struct sentence *sentence = verdict_add(work, VERDICT_PROCESS);

        if (sentence)
            say(sentence, "ctrun is stopped (pid %d, T): kill -CONT lets it go on",
                (int)job->launcher);
    }
    if (!verdict_blames(work, job->ranks))
        return;
    for (int i = 0; i < job->ranks; i++) {
        const struct rank_snapshot *rank = &job->rank[i];
        const struct group_snapshot *line = NULL;
        struct blame blame;

        for (int j = 0; j < CONTROL_GROUPS && !line; j++)
            line = rank->group[j].id ? &rank->group[j] : NULL;
        blame = blame_rank(job, i, line, 0, 0);
        if (!work->mentioned[i]
            && (blame.what == STOPPED || blame.what == TRACED
                || (blame.what == DIED && rank->wrapper.state)))
            work->blames[blamed++] = blame;
    }
    if (blamed > 0) {
        struct sentence *sentence = verdict_add(work, VERDICT_PROCESS);

        if (sentence)
            verdict_say_blames(work, sentence, "", blamed);
    }
}

/* ---- The whole ------------------------------------------------------------- */

static const char *word_of(const struct verdict *verdict, const struct job_snapshot *job)
{
    int speaks = 0, starts = 0, here = 0;

    if (all_stopped(job))
        return "stopped";
    if (verdict->stuck > 0)
        return "stuck";
    for (int i = 0; i < job->ranks; i++) {
        const struct rank_snapshot *rank = &job->rank[i];

        here += rank->process.state && !snapshot_death_of(job, rank->rank);
        starts += rank->state == CONTROL_INIT;
        speaks += rank->state != CONTROL_STARTED || job->own_memory;
    }
    return here == 0     ? "ending"
           : speaks == 0 ? "running" /* what libct does not know of */
           : starts > 0  ? "starting"
                         : "moving";
}

static void speak(struct verdict_in_work *work)
{
    const struct job_snapshot *job = work->job;
    struct sentence circle;
    int found;

    while ((found = waits_deadlock(&work->waits, &circle)) > 0) {
        struct sentence *sentence = verdict_add(work, VERDICT_DEADLOCK);

        if (!sentence)
            return;
        *sentence = circle;
    }
    work->failed |= found < 0;
    for (int i = 0; i < work->groups.count && !work->failed; i++) {
        verdict_group(work, &work->groups.view[i]);
        verdict_messages(work, &work->groups.view[i]);
    }
    say_init(work);
    for (int i = 0; i < job->ranks && !work->failed; i++)
        if (*job->rank[i].waiting_for && job->rank[i].state != CONTROL_INIT && !work->mentioned[i]
            && words_age(job, job->rank[i].waiting_since_ns) >= work->least_ns)
            say_waiting(work, i);
    say_processes(work);
}

int verdict_make(struct verdict *verdict, const struct job_snapshot *job, uint64_t least_ns)
{
    struct verdict_in_work work = { .verdict = verdict, .job = job, .least_ns = least_ns };
    const size_t ranks = (size_t)(job->ranks > 0 ? job->ranks : 1);

    *verdict = (struct verdict){ .word = "unknown" };
    work.failed =
        groups_open(&work.groups, job) < 0 || waits_open(&work.waits, &work.groups, least_ns) < 0;
    work.mentioned = calloc(ranks, 1);
    work.numbers = calloc(ranks + (size_t)work.groups.members_used, sizeof *work.numbers);
    work.failed |= !work.mentioned || !work.numbers;
    if (!work.failed)
        speak(&work);
    for (int i = 0; i < verdict->count; i++)
        verdict->stuck += verdict->sentence[i].kind != VERDICT_TOGETHER;
    verdict->word = word_of(verdict, job);
    waits_close(&work.waits);
    groups_close(&work.groups);
    free(work.blames);
    free(work.numbers);
    free(work.mentioned);
    return work.failed ? -1 : 0;
}

void verdict_free(struct verdict *verdict)
{
    free(verdict->sentence);
    *verdict = (struct verdict){ .word = "unknown" };
}

const char *verdict_kind_name(int kind)
{
    static const char *const names[] = {
        [VERDICT_MISSING] = "missing",   [VERDICT_MISMATCH] = "mismatch",
        [VERDICT_DEADLOCK] = "deadlock", [VERDICT_HOSTS] = "other_hosts",
        [VERDICT_INIT] = "init",         [VERDICT_STORE] = "store",
        [VERDICT_PROCESS] = "process",   [VERDICT_TOGETHER] = "together"
    };

    return names[kind];
}
