/* SPDX-License-Identifier: Apache-2.0 */
/* first_failure.c - finds the worker that died first, as far as the kernel shows it.
 *
 * SIGCHLD does not show the order of deaths, since several SIGCHLDs merge into one, and a zombie
 * does not have a time of death.  But an epoll set reports descriptors in the order in which they
 * became ready, and a pidfd becomes ready when its process has died.  So one epoll set of pidfds
 * lists the workers in the order of their deaths.
 *
 * This order is misleading in two cases.  First, a dying process closes its sockets before the
 * kernel reports its death, and with a GPU the time between may be seconds.  Another worker that
 * sees the closed sockets fails, too, and may be reported dead earlier.  So among workers that are
 * found dead or dying at the same time, a death by signal takes precedence over an exit, since an
 * exit can be the result of another death, but SIGKILL can't.
 *
 * Second, a Python exception is older than the death that follows it, perhaps by a long time.
 * @record writes the time of the exception to error.json, and the earliest time takes precedence.
 * Other workers may be about to write their error.json, so ctrun waits for them as long as
 * torchrun's polling would have. */
#include "launcher/report/first_failure.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/report/error_file.h"
#include "runtime/util/clock.h"
#include "runtime/util/process_state.h"

#define KILLED_MS 1000
#define NOTES_MS 100
#define EARLIER_MS 2000

int first_failure_open(struct first_failure *failures, struct worker *workers, int size,
                       void (*died)(void *arg, const struct worker *worker), void *arg)
{
    *failures =
        (struct first_failure){ .workers = workers, .size = size, .died = died, .arg = arg };
    failures->epoll = epoll_create1(EPOLL_CLOEXEC);
    failures->pidfds = malloc((size_t)size * sizeof *failures->pidfds);
    failures->ended = calloc((size_t)size, sizeof *failures->ended);
    for (int i = 0; failures->pidfds && i < size; i++)
        failures->pidfds[i] = -1;
    return failures->epoll >= 0 && failures->pidfds && failures->ended ? 0 : -1;
}

static void first_forget(struct first_failure *failures, int i)
{
    if (failures->pidfds[i] >= 0)
        close(failures->pidfds[i]);
    failures->pidfds[i] = -1;
}

void first_failure_close(struct first_failure *failures)
{
    for (int i = 0; failures->pidfds && i < failures->size; i++)
        first_forget(failures, i);
    if (failures->epoll >= 0)
        close(failures->epoll);
    free(failures->pidfds);
    free(failures->ended);
    failures->epoll = -1;
    failures->pidfds = failures->ended = NULL;
}

void first_failure_watch(struct first_failure *failures, const struct worker *worker)
{
    const int i = (int)(worker - failures->workers);
    struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.u32 = (uint32_t)i };

    first_forget(failures, i);
    failures->pidfds[i] = process_open(worker->pid);
    if (failures->pidfds[i] >= 0)
        epoll_ctl(failures->epoll, EPOLL_CTL_ADD, failures->pidfds[i], &event);
}

static int first_note(struct first_failure *failures, int count, int i)
{
    if (!worker_check(&failures->workers[i]))
        return count;
    first_forget(failures, i);
    failures->died(failures->arg, &failures->workers[i]);
    failures->ended[count] = i;
    return count + 1;
}

/* Collects the workers that have ended, and waits at most `wait_ms` for the first of them.  If more
 * workers have ended than one epoll_wait() reports, the next epoll_wait() reports the rest, still
 * in order.  Returns the new number of entries in ->ended. */
static int collect(struct first_failure *failures, int count, int wait_ms)
{
    struct epoll_event events[64];
    int got;

    do {
        got = epoll_wait(failures->epoll, events, sizeof events / sizeof *events, wait_ms);
        for (int i = 0; i < got; i++)
            count = first_note(failures, count, (int)events[i].data.u32);
        wait_ms = 0;
    } while (got > 0);
    for (int i = 0; i < failures->size; i++) /* epoll reports no worker without a pidfd */
        count = first_note(failures, count, i);
    return count;
}

int first_failure_collect(struct first_failure *failures)
{
    return collect(failures, 0, 0);
}

/* ---- Which worker failed first? --------------------------------------------- */

/* A program may get the signals below because another worker died.  For example, PyTorch's watchdog
 * calls abort(), and a write to a dead peer raises SIGPIPE.  The stop signals are in the list since
 * a stopped process has such a signal as its status in /proc. */
int signal_is_unprovoked(int number)
{
    switch (number) {
    case 0:
    case SIGABRT:
    case SIGPIPE:
    case SIGALRM:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
        return 0;
    default:
        return 1;
    }
}

int worker_was_killed(const struct worker *worker)
{
    return !worker->running && !worker_exited(worker) && signal_is_unprovoked(worker->code);
}

/* True if the worker is dying of an unprovoked signal now.  Field 52 of /proc/PID/stat is the
 * status with which the process ends, and the kernel sets this field when the end begins. */
static int is_being_killed(const struct worker *worker)
{
    char status[PROCESS_FIELD];

    return worker->running
           && signal_is_unprovoked(atoi(process_stat(worker->pid, 52, status)) & 0x7f);
}

static int any_is_being_killed(const struct first_failure *failures)
{
    for (int i = 0; i < failures->size; i++)
        if (is_being_killed(&failures->workers[i]))
            return 1;
    return 0;
}

static int any_runs(const struct first_failure *failures)
{
    for (int i = 0; i < failures->size; i++)
        if (failures->workers[i].running)
            return 1;
    return 0;
}

/* Times of an error.json, in seconds since 1970. */
struct note {
    double timestamp, written; /* 0 if not known */
};

static struct note note_of(const struct worker *worker, const struct run_folder *files)
{
    struct error_json error;
    struct note note;
    char path[PATH_MAX];

    run_folder_error_file(files, worker->attempt, worker->local_rank, path, sizeof path);
    error_json_read(&error, path);
    note = (struct note){ error.timestamp, error.timestamp > 0 ? error.written : 0 };
    error_json_free(&error);
    return note;
}

int64_t worker_noted_ns(const struct worker *worker, const struct run_folder *files)
{
    const struct note note = note_of(worker, files);
    const double behind = note.written - note.timestamp; /* PyTorch's timestamp has no fraction */

    if (note.timestamp <= 0 || note.timestamp > 9e9)
        return 0;
    return (int64_t)((note.timestamp + (behind > 0 && behind < 1 ? behind : 0)) * 1e9);
}

static int is_earlier(struct note note, struct note than)
{
    if (note.timestamp == 0 || note.timestamp == than.timestamp)
        return note.timestamp > 0 && note.written < than.written;
    return note.timestamp < than.timestamp;
}

static int first_failed(const struct first_failure *failures, int count)
{
    for (int i = 0; i < count; i++)
        if (worker_failed(&failures->workers[failures->ended[i]]))
            return i;
    return -1;
}

/* Returns the index in ->ended of the first worker that was killed, or -1 if no worker was
 * killed. */
static int first_killed(const struct first_failure *failures, int count)
{
    for (int i = 0; i < count; i++)
        if (worker_was_killed(&failures->workers[failures->ended[i]]))
            return i;
    return -1;
}

int first_failure_await_killed(struct first_failure *failures, int count)
{
    const int64_t deadline = clock_ms() + KILLED_MS;

    while (any_is_being_killed(failures) && clock_ms() < deadline)
        count = collect(failures, count, 5);
    return count;
}

/* True if a worker that still runs wrote an earlier error.  Such a worker is about to end. */
static int any_failed_earlier(const struct first_failure *failures, struct note note,
                              const struct run_folder *files)
{
    for (int i = 0; i < failures->size; i++)
        if (failures->workers[i].running && is_earlier(note_of(&failures->workers[i], files), note))
            return 1;
    return 0;
}

static int wait_for_notes(struct first_failure *failures, int *count, int first,
                          const struct run_folder *files)
{
    const int64_t now = clock_ms();
    struct note note = note_of(&failures->workers[failures->ended[first]], files);

    if (note.timestamp == 0)
        return first;
    while (any_runs(failures)
           && (clock_ms() < now + NOTES_MS
               || (clock_ms() < now + EARLIER_MS && any_failed_earlier(failures, note, files))))
        *count = collect(failures, *count, 5);
    for (int i = 0; i < *count; i++) {
        const struct worker *worker = &failures->workers[failures->ended[i]];
        const struct note its = worker_failed(worker) ? note_of(worker, files) : (struct note){ 0 };

        if (is_earlier(its, note)) {
            note = its;
            first = i;
        }
    }
    return first;
}

int first_failure_to_front(struct first_failure *failures, int count,
                           const struct run_folder *files)
{
    const int first = first_failed(failures, count);
    int found, worker;

    if (first < 0)
        return count;
    count = first_failure_await_killed(failures, count);
    found = first_killed(failures, count);
    if (found < 0)
        found = wait_for_notes(failures, &count, first, files);
    worker = failures->ended[found];
    memmove(failures->ended + 1, failures->ended, (size_t)found * sizeof *failures->ended);
    failures->ended[0] = worker;
    return count;
}
