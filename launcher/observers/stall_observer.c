/* SPDX-License-Identifier: Apache-2.0 */
/* stall_observer.c - checks the control page at least twice in the time of --stall, and when the
 * longest wait so far would reach that time.
 *
 * A check first asks the observers of ranks that use another library than libct (ask.h).
 *
 * Most checks read only the page, because it shows no rank that has waited for the time of --stall.
 * Otherwise the check reads /proc and makes verdicts.  The page does not show what a process
 * without libct does.  Such a process is reported if each check in the time of --stall found it
 * stopped, or found that no process of the job had worked since the check before.  The observer
 * runs no external tool, since the cause that hangs the workers may hang the tool, too.
 * The same verdicts are reported again after ten times the wait, so a server that waits for
 * requests causes only a few lines. */
#include "launcher/observers/stall_observer.h"

#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "launcher/inspect/ask.h"
#include "launcher/inspect/elf_module.h"
#include "launcher/inspect/page_reader.h"
#include "launcher/inspect/proc_info.h"
#include "launcher/inspect/verdict_text.h"
#include "launcher/job/job.h"
#include "launcher/observers/observers.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define MOMENT_NS (UINT64_C(5) * 1000000000)
#define ANSWER_US 20000    /* time between two looks whether the observers have answered */
#define MOST_BACKGROUND 10 /* per cent of a processor */
#define TICKS_MS 20        /* /proc counts a process's times in user and kernel mode in 10 ms */
#define LATER_US 10000     /* a check comes so much later than a wait reaches the time of --stall */
#define MOST_LINES 6       /* limited, since the terminal also shows the workers' output */

static uint64_t stall_limit(const struct stall *stall)
{
    return (uint64_t)stall->seconds * 1000000000;
}

/* Sets the time of the next check, if the longest wait now is `wait_ns`. */
static void stall_set_timer(struct stall *stall, uint64_t wait_ns)
{
    const uint64_t limit = stall_limit(stall), left = wait_ns < limit ? limit - wait_ns : limit;
    const uint64_t us = (left < limit / 2 ? left : limit / 2) / 1000 + LATER_US;
    const struct timeval next = { (time_t)(us / 1000000), (suseconds_t)(us % 1000000) };

    event_add(&stall->timer, &next);
}

/* Asks the ranks that have an observer what they do.  Returns 1 if their answers are there, or if
 * there is no observer; else 0, and then the next check comes soon. */
static int stall_has_answers(struct stall *stall, const struct job_snapshot *job)
{
    const struct timeval soon = { 0, ANSWER_US };
    const int some = ask_is_possible(job);

    if (some && !stall->answers_until) {
        ask_observers(stall->job->control.memory);
        stall->answers_until = deadline_after(ASK_LIMIT_MS);
    } else if (!some || !ask_is_open(job) || time_left_ms(stall->answers_until, 1) == 0) {
        stall->answers_until = 0;
        return 1;
    }
    event_add(&stall->timer, &soon);
    return 0;
}

static uint64_t stall_longer(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns for how many ns a rank has waited; 0 if no rank waits. */
static uint64_t longest_wait(const struct job_snapshot *job)
{
    uint64_t longest = 0;

    for (int i = 0; i < job->ranks; i++) {
        const struct rank_snapshot *rank = &job->rank[i];

        if (rank->state == CONTROL_INIT)
            longest = stall_longer(longest, snapshot_age(job, rank->since_ns));
        if (*rank->waiting_for)
            longest = stall_longer(longest, snapshot_age(job, rank->waiting_since_ns));
        for (int j = 0; j < CONTROL_GROUPS; j++) {
            const struct group_snapshot *line = &rank->group[j];

            if (line->id && !line->moving && line->now.phase == CONTROL_IN)
                longest = stall_longer(longest, snapshot_age(job, line->now.begun_ns));
        }
    }
    return longest;
}

/* Returns 1 if a process that does not use the control page is stopped. */
static int a_process_is_stopped(const struct job_snapshot *job)
{
    for (int i = 0; i < job->ranks; i++)
        if (job->rank[i].state == CONTROL_STARTED && job->rank[i].worker > 0
            && process_read(job->rank[i].worker).state == 'T')
            return 1;
    return 0;
}

/* Returns for how many ns the checks have found a process without libct stopped; 0 if none is
 * stopped now. */
static uint64_t stopped_for(struct stall *stall, const struct job_snapshot *job)
{
    if (!a_process_is_stopped(job))
        stall->stopped_ns = 0;
    else if (stall->stopped_ns == 0)
        stall->stopped_ns = job->now_ns;
    return stall->stopped_ns ? snapshot_age(job, stall->stopped_ns) : 0;
}

/* Returns 1 if ctrun sees all calls of the rank, or a call that it is in.  An observer does not see
 * all, for example not gloo's isend() and irecv(). */
static int calls_are_seen(const struct rank_snapshot *rank)
{
    if (rank->state != CONTROL_STARTED && rank->state != CONTROL_READY)
        return 1;
    for (int i = 0; i < CONTROL_GROUPS; i++)
        if (rank->group[i].id
            && (!rank->group[i].is_observed || rank->group[i].now.phase == CONTROL_IN))
            return 1;
    return 0;
}

/* Returns the processor time, in ms, that observed ranks may use though none works: 1 % of a
 * processor for each of the groups of a rank, since gloo's thread for a group uses 0.1 to 0.3 %.
 * The sum is at most 10 %, so that a rank that works is noticed. */
static uint64_t background_ms(const struct job_snapshot *job, uint64_t elapsed_ns)
{
    uint64_t groups = 0, ranks = 0;

    for (int i = 0; i < job->ranks; i++) {
        ranks += job->rank[i].observer != OBSERVER_NONE;
        for (int j = 0; j < CONTROL_GROUPS; j++)
            groups += job->rank[i].group[j].id != 0;
    }
    return ranks * TICKS_MS
           + (groups < MOST_BACKGROUND ? groups : MOST_BACKGROUND) * (elapsed_ns / 1000000) / 100;
}

/* Notes when the processes of the job worked last, if ctrun sees the calls of no rank and if the
 * kernel shows the processes. */
static void look_at_work(struct stall *stall, const struct job_snapshot *job)
{
    struct process_work work = { 0, 0 };
    uint64_t answers_ms = 0, background;
    int is_seen = 0;

    for (int i = 0; i < job->ranks; i++) {
        is_seen |= calls_are_seen(&job->rank[i]);
        answers_ms += job->rank[i].answers_ms;
    }
    if (is_seen || process_work_below(getpid(), &work) < 0) {
        stall->worked_ns = 0;
        return;
    }
    background = background_ms(job, snapshot_age(job, stall->looked_ns));
    work.cpu_ms = work.cpu_ms > answers_ms ? work.cpu_ms - answers_ms : 0;
    if (!stall->worked_ns || work.written != stall->work.written
        || work.cpu_ms + background < stall->work.cpu_ms /* a process has ended */
        || work.cpu_ms > stall->work.cpu_ms + background)
        stall->worked_ns = job->now_ns;
    stall->work = work;
    stall->looked_ns = job->now_ns;
}

/* Returns 1 if a debugger has held a process for less than MOMENT_NS, for example because ctctl
 * stack reads a stack.  Nothing is reported then. */
static int held_for_a_moment(struct stall *stall, const struct job_snapshot *job)
{
    int held = 0;

    for (int i = 0; i < job->ranks; i++)
        held |= job->rank[i].process.state == 't';
    if (!held)
        stall->traced_ns = 0;
    else if (stall->traced_ns == 0)
        stall->traced_ns = job->now_ns;
    return held && snapshot_age(job, stall->traced_ns) < MOMENT_NS;
}

/* Returns 1 if the verdicts must be reported, and then remembers them as reported. */
static int is_news(struct stall *stall, const struct verdict_list *list)
{
    uint64_t key = 0, waited_ns = 0;
    char text[VERDICT_TEXT];

    for (int i = 0; i < list->count; i++) {
        const struct verdict *verdict = &list->verdict[i];

        key = key * 31 + verdict_text(verdict, list->job, text, sizeof text);
        waited_ns = verdict->waited_ns > waited_ns ? verdict->waited_ns : waited_ns;
    }
    if (list->count == 0 || (key == stall->reported && waited_ns < stall->again_ns))
        return 0;
    stall->reported = key;
    stall->again_ns = 10 * waited_ns;
    return 1;
}

/* Logs a verdict.  A place in a program is given only as an address, because the tool that finds
 * its source line may hang, too. */
static void stall_say_line(const char *text)
{
    if (strstr(text, "+0x"))
        log_line(LOG_WARN,
                 "%s; ctctl status %d names the source line, if the program was compiled with -g",
                 text, (int)getpid());
    else
        log_line(LOG_WARN, "%s", text);
}

static void stall_say(const struct verdict_list *list)
{
    char text[VERDICT_TEXT];

    for (int i = 0; i < list->count && i < MOST_LINES; i++) {
        verdict_text(&list->verdict[i], list->job, text, sizeof text);
        stall_say_line(text);
    }
    if (list->count > MOST_LINES)
        log_line(LOG_WARN, "%d more like these: ctctl status %d", list->count - MOST_LINES,
                 (int)getpid());
}

static void stall_check(evutil_socket_t fd, short what, void *arg)
{
    struct stall *stall = arg;
    const struct control_host *control = &stall->job->control;
    const uint64_t limit_ns = stall_limit(stall);
    struct job_snapshot job;
    struct verdict_list list;
    uint64_t stopped_ns, wait_ns;

    (void)fd;
    (void)what;
    if (!job_moves(stall->job))
        return;
    if (!control->head || page_read(control->memory, &job) < 0) {
        stall_set_timer(stall, 0);
        return;
    }
    if (!stall->answers_until)
        look_at_work(stall, &job);
    if (!stall_has_answers(stall, &job)) {
        snapshot_free(&job);
        return;
    }
    stopped_ns = stopped_for(stall, &job);
    job.quiet_ns = stall->worked_ns ? snapshot_age(&job, stall->worked_ns) : 0;
    wait_ns = stall_longer(stall_longer(longest_wait(&job), stopped_ns), job.quiet_ns);
    stall_set_timer(stall, wait_ns);
    if (wait_ns >= limit_ns) {
        process_read_all(&job);
        module_places(&job);
        verdict_list_make(&list, &job, limit_ns); /* makes fewer verdicts if out of memory */
        for (int i = 0; i < list.count; i++)
            if (list.verdict[i].kind == VERDICT_PROCESS)
                list.verdict[i].waited_ns = stopped_ns;
        if (!held_for_a_moment(stall, &job) && is_news(stall, &list)) {
            stall_say(&list);
            job_stalled(stall->job, &list);
        }
        verdict_list_free(&list);
    } else {
        stall->traced_ns = 0;
    }
    snapshot_free(&job);
}

static int stall_job_began(void *state, struct job *job)
{
    struct stall *stall = state;

    stall->job = job;
    stall->seconds = job->options->stall;
    evtimer_assign(&stall->timer, job->base, stall_check, stall);
    return 0;
}

static void stall_round_began(void *state, struct job *job)
{
    struct stall *stall = state;

    (void)job;
    stall->answers_until = 0;
    stall->worked_ns = 0;
    stall->reported = stall->again_ns = stall->stopped_ns = stall->traced_ns = 0;
    if (stall->seconds > 0)
        stall_set_timer(stall, 0);
}

const struct job_observer stall_observer = { .bytes = sizeof(struct stall),
                                             .job_began = stall_job_began,
                                             .round_began = stall_round_began };
