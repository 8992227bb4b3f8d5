/* SPDX-License-Identifier: Apache-2.0 */
/* timer_watchdog.c - a FIFO, the timers that workers set over it, and one clock for the next of
 * them.
 *
 * When a timer expires its process gets the signal that it asked for, and the worker's death is
 * a failure like any other.  (torchrun sends the signal to itself too, and dies of it.)  Only
 * processes of our workers are ever signalled, whatever a line says. */
#include "launcher/health/timer_watchdog.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/report/report.h"
#include "runtime/util/log.h"
#include "runtime/util/signal_name.h"

#define MOST_TIMERS 65536

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- The FIFO -------------------------------------------------------------- */

/* An old FIFO is replaced, as by torchrun; another kind of file is not. */
static int make_fifo(const char *path)
{
    struct stat info;

    if (lstat(path, &info) == 0 && S_ISFIFO(info.st_mode))
        unlink(path);
    return mkfifo(path, 0600);
}

static int name_fifo(struct watchdog *watchdog)
{
    const char *chosen = variable("TORCHELASTIC_TIMER_FILE"), *folder = variable("TMPDIR");
    const size_t size = sizeof watchdog->path;
    const int length = chosen ? snprintf(watchdog->path, size, "%s", chosen)
                              : snprintf(watchdog->path, size, "%s/ctrun_timer_%d",
                                         folder ? folder : "/tmp", (int)getpid());

    errno = ENAMETOOLONG;
    return length < (int)size ? 0 : -1;
}

/* Opened for writing too, so that it does not end when the last worker closes it. */
int watchdog_open(struct watchdog *watchdog, struct worker *workers, int size)
{
    const char *wanted = variable("TORCHELASTIC_ENABLE_FILE_TIMER");

    *watchdog = (struct watchdog){ .fd = -1, .workers = workers, .size = size };
    if (!wanted || strcmp(wanted, "1") != 0)
        return 0;
    if (name_fifo(watchdog) == 0 && make_fifo(watchdog->path) == 0) {
        watchdog->fd = open(watchdog->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (watchdog->fd >= 0 && setenv("TORCHELASTIC_TIMER_FILE", watchdog->path, 1) == 0)
            return 0;
        unlink(watchdog->path);
    }
    log_line(LOG_ERROR, "TORCHELASTIC_ENABLE_FILE_TIMER=1: cannot make the FIFO %s: %s",
             watchdog->path, strerror(errno));
    watchdog->path[0] = '\0';
    return 1;
}

void watchdog_close(struct watchdog *watchdog)
{
    if (!*watchdog->path)
        return;
    if (event_initialized(&watchdog->readable)) {
        event_del(&watchdog->readable);
        event_del(&watchdog->expiry);
    }
    close(watchdog->fd);
    unlink(watchdog->path);
    free(watchdog->timers);
    *watchdog = (struct watchdog){ .fd = -1 };
}

/* ---- Timers ---------------------------------------------------------------- */

static void arm(struct watchdog *watchdog)
{
    double first = 0, left;
    struct timeval time;

    for (int i = 0; i < watchdog->count; i++)
        if (i == 0 || watchdog->timers[i].expires < first)
            first = watchdog->timers[i].expires;
    if (watchdog->count == 0) {
        event_del(&watchdog->expiry);
        return;
    }
    left = first - now();
    left = left < 0 ? 0 : left > 86400 ? 86400 : left;
    time.tv_sec = (time_t)left;
    time.tv_usec = (suseconds_t)((left - (double)time.tv_sec) * 1e6) + 1;
    event_add(&watchdog->expiry, &time);
}

/* A process has one timer in a scope: a new one takes the place of the old. */
static void forget(struct watchdog *watchdog, const struct timer_request *request)
{
    for (int i = 0; i < watchdog->count; i++)
        if (watchdog->timers[i].pid == request->pid
            && !strcmp(watchdog->timers[i].scope, request->scope)) {
            watchdog->timers[i] = watchdog->timers[--watchdog->count];
            return;
        }
}

static int keep(struct watchdog *watchdog, const struct timer_request *request)
{
    if (watchdog->count == watchdog->room) {
        const int room = watchdog->room ? 2 * watchdog->room : 16;
        struct timer_request *more =
            room > MOST_TIMERS ? NULL
                               : realloc(watchdog->timers, (size_t)room * sizeof *watchdog->timers);

        if (!more)
            return -1;
        watchdog->timers = more;
        watchdog->room = room;
    }
    watchdog->timers[watchdog->count++] = *request;
    return 0;
}

static void complain(struct watchdog *watchdog, const char *what)
{
    if (!watchdog->complained)
        log_line(LOG_WARN, "%s: %s; it was passed over, and so will be others like it",
                 watchdog->path, what);
    watchdog->complained = 1;
}

static void take_line(struct watchdog *watchdog)
{
    struct timer_request request;

    if (timer_request_read(&request, watchdog->line) < 0) {
        complain(watchdog, "a line is no request for a timer");
        return;
    }
    forget(watchdog, &request);
    if (request.expires >= 0 && request.signal > 0 && keep(watchdog, &request) < 0)
        complain(watchdog, "there are too many timers");
}

static void take_bytes(struct watchdog *watchdog, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != '\n') {
            watchdog->too_long |= watchdog->used == PIPE_BUF;
            if (!watchdog->too_long)
                watchdog->line[watchdog->used++] = bytes[i];
            continue;
        }
        watchdog->line[watchdog->used] = '\0';
        if (watchdog->too_long)
            complain(watchdog, "a line is longer than PIPE_BUF");
        else
            take_line(watchdog);
        watchdog->used = 0;
        watchdog->too_long = 0;
    }
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct watchdog *watchdog = arg;
    char bytes[4 * PIPE_BUF];
    const ssize_t got = read(fd, bytes, sizeof bytes);

    (void)what;
    if (got > 0)
        take_bytes(watchdog, bytes, (size_t)got);
    arm(watchdog);
}

/* ---- Expiry ---------------------------------------------------------------- */

/* Parent and session of a process; -1: it is gone. */
static int family(pid_t pid, pid_t *parent, pid_t *session)
{
    char path[64], stat[1024];
    const char *behind_name;
    int fd, group;
    ssize_t got;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return -1;
    got = read(fd, stat, sizeof stat - 1);
    close(fd);
    stat[got > 0 ? got : 0] = '\0';
    behind_name = strrchr(stat, ')');
    return behind_name && sscanf(behind_name + 1, " %*c %d %d %d", parent, &group, session) == 3
               ? 0
               : -1;
}

/* The worker whose process it is, itself or started by it; NULL: nobody's. */
static struct worker *owner(const struct watchdog *watchdog, pid_t pid)
{
    for (int steps = 0; pid > 1 && steps < 64; steps++) {
        pid_t parent, session;

        if (family(pid, &parent, &session) < 0)
            return NULL;
        for (int i = 0; i < watchdog->size; i++)
            if (watchdog->workers[i].running
                && (watchdog->workers[i].group == pid || watchdog->workers[i].group == session))
                return &watchdog->workers[i];
        pid = parent;
    }
    return NULL;
}

static void expire(struct watchdog *watchdog, const struct timer_request *timer)
{
    struct worker *worker = owner(watchdog, timer->pid);
    char name[32];

    if (worker) {
        log_line(LOG_ERROR, "rank %d (pid %d): its timer '%s' expired: %s to process %d",
                 worker->rank, (int)worker->pid, timer->scope,
                 signal_name(timer->signal, name, sizeof name), (int)timer->pid);
        if (timer->pid == worker->pid)
            worker->expired = timer->signal;
        kill(timer->pid, timer->signal);
    } else if (kill(timer->pid, 0) == 0)
        complain(watchdog, "a timer names a process that is none of this job's workers'");
}

static void on_expiry(evutil_socket_t fd, short what, void *arg)
{
    struct watchdog *watchdog = arg;
    const double time = now();

    (void)fd;
    (void)what;
    for (int i = 0; i < watchdog->count;)
        if (watchdog->timers[i].expires <= time) {
            const struct timer_request timer = watchdog->timers[i];

            watchdog->timers[i] = watchdog->timers[--watchdog->count];
            expire(watchdog, &timer);
        } else
            i++;
    arm(watchdog);
}

void watchdog_watch(struct watchdog *watchdog, struct event_base *base)
{
    if (!*watchdog->path)
        return;
    event_assign(&watchdog->readable, base, watchdog->fd, EV_READ | EV_PERSIST, on_readable,
                 watchdog);
    evtimer_assign(&watchdog->expiry, base, on_expiry, watchdog);
    event_add(&watchdog->readable, NULL);
}

void watchdog_clear(struct watchdog *watchdog)
{
    if (!*watchdog->path)
        return;
    on_readable(watchdog->fd, EV_READ, watchdog);
    watchdog->count = 0;
    watchdog->used = 0;
    watchdog->too_long = 0;
    arm(watchdog);
}
