/* SPDX-License-Identifier: Apache-2.0 */
/* should_stop.c - ct_should_stop(): all ranks say yes at the same step.
 *
 * Of the workers of one ctrun job, on the default group, ctrun decides (stop_step.h).  For all
 * other groups, and without ctrun, each rank brings its own wish (a signal, a deadline, what
 * ctrun asked) and the largest of them is everybody's: there it is a collective. */
#include "runtime/monitor/stop_step.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "config/parse_deadline.h"
#include "runtime/group/default_group.h"
#include "runtime/group/group.h"
#include "runtime/group/group_extension.h"
#include "runtime/util/clock.h"

#define LONGEST_SLEEP_MS 100

/* ---- The signal ------------------------------------------------------------ */

/* Of the process, as its dispositions are. */
static struct {
    _Atomic pid_t listener;
    _Atomic int came;
} sigterm;

/* A child that was forked has the handler, and nobody who asks what came: it dies as it would
 * have without it. */
static void note_signal(int number)
{
    const struct sigaction standard = { .sa_handler = SIG_DFL };
    const int cause = errno;

    if (getpid() == atomic_load(&sigterm.listener)) {
        atomic_store(&sigterm.came, 1);
    } else {
        sigaction(number, &standard, NULL);
        raise(number); /* which comes when this handler has returned */
    }
    errno = cause;
}

/* A handler of the program's own stays: then only ctrun's word counts. */
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

/* ---- By ctrun's word ------------------------------------------------------- */

/* A signal that reached this worker alone. */
static void tell_launcher(const struct control *control)
{
    const uint64_t one = 1;

    if (!atomic_load(&sigterm.came) || atomic_exchange(&control->own->stop_wanted, 1))
        return;
    if (control->event_fd >= 0 && write(control->event_fd, &one, sizeof one) < 0)
        atomic_store(&control->own->stop_wanted, 0); /* the next step tries again */
}

/* Our word is closed: ctrun is about to tell. */
static ct_status wait_for_decision(ct_group *g, uint64_t *stop_at)
{
    struct control *control = &g->mesh->control;
    const int64_t deadline = deadline_after(g->timeout_ms);

    control_waiting(control, "the step at which all ranks stop");
    for (;;) {
        const uint32_t heard = atomic_load(&control->head->news);

        *stop_at = atomic_load(&control->head->stop_at);
        if (*stop_at || clock_ms() >= deadline)
            break;
        control_sleep(control, heard, time_left_ms(deadline, LONGEST_SLEEP_MS));
    }
    control_waiting(control, "%s", "");
    return *stop_at ? CT_OK
                    : ct_fail(CT_ERR_TIMEOUT,
                              "ctrun did not say within %d ms at which step all ranks stop",
                              g->timeout_ms);
}

static int by_launcher(ct_group *g)
{
    const struct control *control = &g->mesh->control;
    const uint64_t step = stop_steps(control->own) + 1;
    uint64_t stop_at = atomic_load_explicit(&control->head->stop_at, memory_order_acquire);

    tell_launcher(control);
    if (!stop_at && stop_pass(control->own, step))
        return 0;
    if (!stop_at) {
        const ct_status status = wait_for_decision(g, &stop_at);

        if (status != CT_OK)
            return status;
    }
    atomic_store(&control->own->steps, step | STOP_CLOSED); /* for those who look */
    return step >= stop_at;
}

/* ---- By all members -------------------------------------------------------- */

/* *at: seconds since the epoch; 0: there is none. */
static ct_status own_deadline(const struct control *control, int64_t *at)
{
    const char *text = getenv("CT_DEADLINE"), *slurm = getenv("SLURM_JOB_END_TIME");

    *at = 0;
    if (control->worker >= 0) /* ctrun has read these, and its own option */
        *at = atomic_load(&control->head->stop_by_ns) / 1000000000;
    else if (text && *text && deadline_of_epoch(text, at) < 0)
        return ct_fail(CT_ERR_INVALID, "CT_DEADLINE=%.60s: it must be seconds since the epoch",
                       text);
    else if (!*at && slurm && deadline_of_epoch(slurm, at) == 0)
        *at -= DEADLINE_MARGIN;
    return CT_OK;
}

static int by_members(ct_group *g, const void *caller)
{
    const struct control *control = &g->mesh->control;
    int32_t wish, all = 0;
    int64_t deadline;
    ct_status status = own_deadline(control, &deadline);
    const int bad = status != CT_OK; /* the others wait for this rank all the same */

    wish = !bad
           && (atomic_load(&sigterm.came) || atomic_load(&control->head->stop_asked)
               || (deadline > 0 && time(NULL) >= deadline));
    status = g->extension->max(g, OPERATION_SHOULD_STOP, wish, &all, caller);
    if (status == CT_OK && bad)
        status = own_deadline(control, &deadline); /* says again what is wrong with it */
    return status == CT_OK ? all != 0 : (int)status;
}

int ct_should_stop(ct_group *group)
{
    ct_group *g;
    const ct_status status = group_resolve_member(group, &g);
    int answer;

    if (status != CT_OK)
        return ct_fail_in(status, "ct_should_stop: ");
    listen_for_signal();
    answer = g == default_group() && g->mesh->whole_job
                 ? by_launcher(g)
                 : by_members(g, __builtin_return_address(0));
    return answer < 0 ? ct_fail_in((ct_status)answer, "ct_should_stop: ") : answer;
}
