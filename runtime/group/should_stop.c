/* SPDX-License-Identifier: Apache-2.0 */
/* should_stop.c - ct_should_stop(): tells all ranks to stop after the same call.
 *
 * A rank wants to stop when it got SIGTERM, when ctrun asks for a stop in the control page, or,
 * without ctrun, at a deadline.  Some calls vote (stop_schedule.h).  A vote is an all-reduce of one
 * number.  The result shows whether any rank wants to stop and, if not, which call votes next.
 *
 * The interval between votes at most doubles from vote to vote, since the first steps of a program
 * may be short and its later steps long.  For the same reason the interval has a fixed bound.  If
 * the steps of a program became a thousand times longer right after a vote, a program without this
 * bound would not stop for hours. */
#include "runtime/group/stop_schedule.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "config/values/parse_deadline.h"
#include "runtime/group/group.h"
#include "runtime/group/group_extension.h"
#include "runtime/util/clock.h"

/* ---- The signal ------------------------------------------------------------ */

/* State of the signal handler, which is the same for all groups of the process. */
static struct {
    _Atomic pid_t listener; /* the process that installed the handler; 0 before that */
    _Atomic int came;       /* 1 if the process got SIGTERM */
} sigterm;

/* The signal handler.  Records the signal.  A child of fork() inherits the handler but never reads
 * `came`, so in a child the signal kills the process as without the handler. */
static void note_signal(int number)
{
    const struct sigaction standard = { .sa_handler = SIG_DFL };
    const int cause = errno;

    if (getpid() == atomic_load(&sigterm.listener)) {
        atomic_store(&sigterm.came, 1);
    } else {
        sigaction(number, &standard, NULL);
        raise(number); /* the signal is delivered when this handler has returned */
    }
    errno = cause;
}

/* Installs the signal handler, unless the program has its own.  If it does, a SIGTERM to this rank
 * does not make the ranks stop. */
static void listen_for_signal(void)
{
    const struct sigaction note = { .sa_handler = note_signal, .sa_flags = SA_RESTART };
    struct sigaction before;

    if (atomic_exchange(&sigterm.listener, getpid()) == getpid())
        return;
    if (sigaction(SIGTERM, NULL, &before) == 0 && !(before.sa_flags & SA_SIGINFO)
        && before.sa_handler == SIG_DFL)
        sigaction(SIGTERM, &note, NULL);
}

/* ---- Does this rank want to stop? ------------------------------------------ */

/* Tells ctrun of the signal, before the vote.  So ctrun knows of the signal before a rank ends
 * because of the vote.  ctrun names this rank in its report, and asks the job's other ranks to
 * stop, which may be in other groups. */
static void report_signal(const struct control *control)
{
    const uint64_t one = 1;

    if (atomic_load(&control->head->stop_asked) || atomic_exchange(&control->own->stop_wanted, 1))
        return;
    if (control->event_fd >= 0 && write(control->event_fd, &one, sizeof one) < 0)
        atomic_store(&control->own->stop_wanted, 0); /* the next vote tries again */
}

/* Returns the time of this process's first vote, in seconds since the epoch.  The margin between
 * the deadline and the end of Slurm's job is at most half of the time from this first vote to the
 * end. */
static int64_t first_vote(void)
{
    static _Atomic int64_t moment;
    int64_t none = 0;

    atomic_compare_exchange_strong(&moment, &none, time(NULL));
    return atomic_load(&moment);
}

/* Sets *at to this rank's deadline, in seconds since the epoch, or to 0 if the rank has no
 * deadline.  A rank under ctrun has none, since ctrun has a timer and asks for the stop in the
 * control page. */
static ct_status own_deadline(const struct control *control, int64_t *at)
{
    const char *text = getenv("CT_DEADLINE"), *slurm = getenv("SLURM_JOB_END_TIME");

    *at = 0;
    if (control->worker >= 0)
        return CT_OK;
    if (text && *text && deadline_of_epoch(text, at) < 0)
        return ct_fail(CT_ERR_INVALID, "CT_DEADLINE=%.60s: it must be seconds since the epoch",
                       text);
    if (!*at && slurm && deadline_of_epoch(slurm, at) == 0)
        *at = deadline_before(*at, first_vote());
    return CT_OK;
}

static int wants_to_stop(const struct control *control, int64_t deadline)
{
    const int came = atomic_load(&sigterm.came);

    if (came)
        report_signal(control);
    return came || atomic_load(&control->head->stop_asked)
           || (deadline > 0 && time(NULL) >= deadline);
}

/* ---- Which call votes? ---------------------------------------------------------- */

#define AVERAGED_VOTES 8 /* the average covers about this number of the last votes */

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int stop_interval(int64_t vote_ns, int64_t step_ns, int last)
{
    const int64_t step = step_ns > 0 ? step_ns : 1;
    const int64_t affordable = (STOP_VOTES_SHARE * vote_ns + step - 1) / step;
    const int64_t bound =
        lesser(lesser(2 * (int64_t)last, STOP_INTERVAL_MOST), STOP_SILENCE_MOST_NS / step);
    const int64_t interval = lesser(affordable, bound);

    return interval > 1 ? (int)interval : 1;
}

int stop_schedule_begin(struct stop_schedule *schedule, int64_t now_ns)
{
    const int64_t since = now_ns - schedule->ended_ns;

    schedule->begun_ns = now_ns;
    if (schedule->vote_ns == 0)
        return 1;
    return stop_interval(schedule->vote_ns, since / schedule->interval, schedule->interval);
}

/* Adds the time of the vote to the average.  This time includes the wait for later ranks, which is
 * most of a vote if ranks share processors.  So a rank that always waits for a slower rank proposes
 * too long an interval.  This does no harm, since the slower rank does not wait, and the smallest
 * proposal is used.  The first vote is left out, since it opens connections. */
void stop_schedule_end(struct stop_schedule *schedule, int64_t now_ns, int interval)
{
    const int64_t taken = now_ns - schedule->begun_ns;

    if (schedule->vote_ns > 0)
        schedule->vote_ns += (taken - schedule->vote_ns) / AVERAGED_VOTES;
    else if (schedule->interval > 0)
        schedule->vote_ns = taken;
    schedule->calls++;
    schedule->next = schedule->calls + (uint64_t)interval;
    schedule->interval = interval;
    schedule->ended_ns = now_ns;
}

/* ---- The vote -------------------------------------------------------------- */

/* In a vote, a rank that wants to stop passes STOP.  Any other rank passes its proposed interval
 * times -1.  The largest value of all ranks is STOP if any rank passed STOP, else the smallest
 * interval times -1. */
enum { STOP = 1 };

static ct_status vote(ct_group *g, const void *caller)
{
    const struct control *control = &g->mesh->control;
    struct stop_schedule *schedule = &g->stop;
    const int interval = stop_schedule_begin(schedule, clock_ns(CLOCK_MONOTONIC));
    int32_t mine, largest = 0;
    int64_t deadline;
    ct_status status = own_deadline(control, &deadline);
    const int bad = status != CT_OK; /* the rank still votes, since the other ranks wait for it */

    listen_for_signal();
    atomic_store(&control->own->stop_checked, 1);
    mine = wants_to_stop(control, deadline) ? STOP : -interval;
    status = g->extension->max(g, OPERATION_SHOULD_STOP, mine, &largest, caller);
    if (status != CT_OK)
        return status;
    stop_schedule_end(schedule, clock_ns(CLOCK_MONOTONIC), largest == STOP ? 1 : -largest);
    if (largest == STOP) {
        schedule->stopped = 1;
        atomic_store(&control->own->stopped_at, schedule->calls);
    }
    return bad && largest != STOP ? own_deadline(control, &deadline) /* sets the error message */
                                  : CT_OK;
}

/* Returns 1 if this call does not vote, and counts the call.  If the group's next collective would
 * fail, returns 0, so that the call votes and the vote reports the reason.  A collective fails if
 * the group has failed, has lost a member, or collects calls since ct_coalesce_begin(). */
static int is_answered(ct_group *g)
{
    if (g->async.coalesced || group_fails_next_call(g) || !stop_schedule_skip(&g->stop))
        return 0;
    (void)group_limit(g); /* uses up the limit of ct_set_next_timeout() */
    return 1;
}

int ct_should_stop(ct_group *group)
{
    ct_group *g;
    ct_status status = group_resolve_member(group, &g);

    if (status == CT_OK && (g->stop.stopped || is_answered(g)))
        return g->stop.stopped;
    if (status == CT_OK)
        status = vote(g, __builtin_return_address(0));
    return status == CT_OK ? g->stop.stopped : (int)ct_fail_in(status, "ct_should_stop: ");
}
