/* SPDX-License-Identifier: Apache-2.0 */
/* first_failure.c - the truth about who died first, as far as the kernel tells it.
 *
 * SIGCHLDs merge, and a zombie bears no date.  But an epoll set reports descriptors
 * in the order in which they became ready, and a pidfd becomes ready when its
 * process has died: one epoll set of pidfds is a queue of the dead.
 *
 * Two things it can't know.  A dying process closes its sockets some time before it
 * counts as dead, with a GPU up to seconds; a quick neighbour sees that, fails too
 * and is dead earlier.  So of those found dead in one look, or dying, who was killed or
 * crashed goes before those who left by themselves: an exit can be an answer to a
 * death, SIGKILL can't.  And a Python exception is older than
 * the death that follows it: @record notes its time in error.json, and the earlier one
 * wins, though Python may take long to end after it; since the others may be about to
 * write theirs, they get the time that torchrun's polling would have given them. */
#include "launcher/report/first_failure.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/report/error_file.h"
#include "runtime/util/clock.h"

#define STRUCK_MS 1000
#define NOTES_MS 100
#define EARLIER_MS 2000

int deaths_open(struct deaths *deaths, struct worker *workers, int size,
                void (*died)(void *arg, const struct worker *worker), void *arg)
{
    *deaths = (struct deaths){ .workers = workers, .size = size, .died = died, .arg = arg };
    deaths->epoll = epoll_create1(EPOLL_CLOEXEC);
    deaths->pidfds = malloc((size_t)size * sizeof *deaths->pidfds);
    deaths->ended = calloc((size_t)size, sizeof *deaths->ended);
    for (int i = 0; deaths->pidfds && i < size; i++)
        deaths->pidfds[i] = -1;
    return deaths->epoll >= 0 && deaths->pidfds && deaths->ended ? 0 : -1;
}

static void forget(struct deaths *deaths, int i)
{
    if (deaths->pidfds[i] >= 0)
        close(deaths->pidfds[i]);
    deaths->pidfds[i] = -1;
}

void deaths_close(struct deaths *deaths)
{
    for (int i = 0; deaths->pidfds && i < deaths->size; i++)
        forget(deaths, i);
    if (deaths->epoll >= 0)
        close(deaths->epoll);
    free(deaths->pidfds);
    free(deaths->ended);
    deaths->epoll = -1;
    deaths->pidfds = deaths->ended = NULL;
}

void deaths_watch(struct deaths *deaths, const struct worker *worker)
{
    const int i = (int)(worker - deaths->workers);
    struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.u32 = (uint32_t)i };

    forget(deaths, i);
    deaths->pidfds[i] = (int)syscall(SYS_pidfd_open, worker->pid, 0);
    if (deaths->pidfds[i] >= 0)
        epoll_ctl(deaths->epoll, EPOLL_CTL_ADD, deaths->pidfds[i], &event);
}

static int note(struct deaths *deaths, int count, int i)
{
    if (!worker_check(&deaths->workers[i]))
        return count;
    forget(deaths, i);
    deaths->died(deaths->arg, &deaths->workers[i]);
    deaths->ended[count] = i;
    return count + 1;
}

/* More than fit into one call come in the next, still in order. */
static int collect(struct deaths *deaths, int count, int wait_ms)
{
    struct epoll_event events[64];
    int got;

    do {
        got = epoll_wait(deaths->epoll, events, sizeof events / sizeof *events, wait_ms);
        for (int i = 0; i < got; i++)
            count = note(deaths, count, (int)events[i].data.u32);
        wait_ms = 0;
    } while (got > 0);
    for (int i = 0; i < deaths->size; i++) /* those without a pidfd */
        count = note(deaths, count, i);
    return count;
}

int deaths_collect(struct deaths *deaths)
{
    return collect(deaths, 0, 0);
}

/* ---- Who failed first? ------------------------------------------------------ */

/* What no program does to itself in answer to a death.  PyTorch's watchdog aborts, a
 * broken pipe is one, and a stopped process has the stop signal for its status. */
static int strikes(int number)
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

int deaths_struck(const struct worker *worker)
{
    return !worker->running && worker->how != CLD_EXITED && strikes(worker->code);
}

/* Field 52 of /proc/<pid>/stat is the status that a process will have ended with; the
 * kernel knows it when the end begins.  Field 2, the name, may hold anything. */
static int is_being_struck(const struct worker *worker)
{
    char path[64], stat[1024], *at;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)worker->pid);
    file = worker->running ? fopen(path, "re") : NULL;
    if (!file)
        return 0;
    stat[fread(stat, 1, sizeof stat - 1, file)] = '\0';
    fclose(file);
    at = strrchr(stat, ')');
    for (int field = 2; at && field < 52; field++)
        at = strchr(at + 1, ' ');
    return at && strikes(atoi(at) & 0x7f);
}

static int somebody_is_being_struck(const struct deaths *deaths)
{
    for (int i = 0; i < deaths->size; i++)
        if (is_being_struck(&deaths->workers[i]))
            return 1;
    return 0;
}

static int somebody_runs(const struct deaths *deaths)
{
    for (int i = 0; i < deaths->size; i++)
        if (deaths->workers[i].running)
            return 1;
    return 0;
}

/* What it left in error.json about when. */
struct note {
    double timestamp, written; /* 0: there is none */
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

static int is_earlier(struct note note, struct note than)
{
    if (note.timestamp == 0 || note.timestamp == than.timestamp)
        return note.timestamp > 0 && note.written < than.written;
    return note.timestamp < than.timestamp;
}

static int first_failed(const struct deaths *deaths, int count)
{
    for (int i = 0; i < count; i++)
        if (worker_failed(&deaths->workers[deaths->ended[i]]))
            return i;
    return -1;
}

/* -1: none was. */
static int first_struck(const struct deaths *deaths, int count)
{
    for (int i = 0; i < count; i++)
        if (deaths_struck(&deaths->workers[deaths->ended[i]]))
            return i;
    return -1;
}

int deaths_await_struck(struct deaths *deaths, int count)
{
    const int64_t deadline = clock_ms() + STRUCK_MS;

    while (somebody_is_being_struck(deaths) && clock_ms() < deadline)
        count = collect(deaths, count, 5);
    return count;
}

/* Runs, but has written its note before: it is on its way out. */
static int somebody_failed_earlier(const struct deaths *deaths, struct note note,
                                   const struct run_folder *files)
{
    for (int i = 0; i < deaths->size; i++)
        if (deaths->workers[i].running && is_earlier(note_of(&deaths->workers[i], files), note))
            return 1;
    return 0;
}

static int wait_for_notes(struct deaths *deaths, int *count, int first,
                          const struct run_folder *files)
{
    const int64_t now = clock_ms();
    struct note note = note_of(&deaths->workers[deaths->ended[first]], files);

    if (note.timestamp == 0)
        return first;
    while (somebody_runs(deaths)
           && (clock_ms() < now + NOTES_MS
               || (clock_ms() < now + EARLIER_MS && somebody_failed_earlier(deaths, note, files))))
        *count = collect(deaths, *count, 5);
    for (int i = 0; i < *count; i++) {
        const struct worker *worker = &deaths->workers[deaths->ended[i]];
        const struct note its = worker_failed(worker) ? note_of(worker, files) : (struct note){ 0 };

        if (is_earlier(its, note)) {
            note = its;
            first = i;
        }
    }
    return first;
}

int deaths_put_culprit_first(struct deaths *deaths, int count, const struct run_folder *files)
{
    const int first = first_failed(deaths, count);
    int culprit, worker;

    if (first < 0)
        return count;
    count = deaths_await_struck(deaths, count);
    culprit = first_struck(deaths, count);
    if (culprit < 0)
        culprit = wait_for_notes(deaths, &count, first, files);
    worker = deaths->ended[culprit];
    memmove(deaths->ended + 1, deaths->ended, (size_t)culprit * sizeof *deaths->ended);
    deaths->ended[0] = worker;
    return count;
}
