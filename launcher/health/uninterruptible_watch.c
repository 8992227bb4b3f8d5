/* SPDX-License-Identifier: Apache-2.0 */
/* uninterruptible_watch.c - reads /proc/<pid>/stat of each worker, ten times within the limit. */
#include "launcher/health/uninterruptible_watch.h"

#include <event2/event.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/util/clock.h"
#include "runtime/util/process_state.h"

static void stuck_check_again(struct uninterruptible_watch *watch)
{
    const double pause = fmin(fmax(watch->limit / 10, 0.01), 5);
    const struct timeval time = { (time_t)pause, (suseconds_t)(fmod(pause, 1) * 1e6) };

    event_add(&watch->timer, &time);
}

static void stuck_check(evutil_socket_t fd, short what, void *arg)
{
    struct uninterruptible_watch *watch = arg;
    const int64_t now = clock_ms();

    (void)fd;
    (void)what;
    for (int i = 0; i < watch->size; i++) {
        if (!watch->workers[i].running || process_state(watch->workers[i].pid) != 'D')
            watch->since[i] = 0;
        else if (watch->since[i] == 0)
            watch->since[i] = now;
        else if ((double)(now - watch->since[i]) >= watch->limit * 1000) {
            watch->found(watch->arg, i);
            return;
        }
    }
    stuck_check_again(watch);
}

/* torchrun reads a float; what is none, or not above 0, means off. */
int uninterruptible_watch_open(struct uninterruptible_watch *watch, struct event_base *base,
                               const struct worker *workers, int size,
                               void (*found)(void *arg, int local_rank), void *arg)
{
    const char *text = getenv("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT");
    char *end = NULL;
    const double limit = text && *text ? strtod(text, &end) : 0;

    *watch = (struct uninterruptible_watch){
        .workers = workers, .size = size, .found = found, .arg = arg
    };
    if (!end || *end || !(limit > 0) || limit > 1e9)
        return 0;
    if (!(watch->since = calloc((size_t)size, sizeof *watch->since)))
        return -1;
    watch->limit = limit;
    evtimer_assign(&watch->timer, base, stuck_check, watch);
    return 0;
}

void uninterruptible_watch_begin(struct uninterruptible_watch *watch)
{
    if (watch->limit > 0) {
        memset(watch->since, 0, (size_t)watch->size * sizeof *watch->since);
        stuck_check_again(watch);
    }
}

void uninterruptible_watch_end(struct uninterruptible_watch *watch)
{
    if (watch->limit > 0)
        event_del(&watch->timer);
}

void uninterruptible_watch_close(struct uninterruptible_watch *watch)
{
    uninterruptible_watch_end(watch);
    free(watch->since);
    *watch = (struct uninterruptible_watch){ .limit = 0 };
}
