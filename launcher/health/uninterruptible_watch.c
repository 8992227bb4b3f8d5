/* SPDX-License-Identifier: Apache-2.0 */
/* uninterruptible_watch.c - a look at /proc/<pid>/stat of each worker, ten times within the limit.
 */
#include "launcher/health/uninterruptible_watch.h"

#include <event2/event.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/util/clock.h"

/* The letter behind the name, which may hold anything; 0: it is gone. */
static char state_of(pid_t pid)
{
    char path[64], stat[512];
    const char *behind_name;
    ssize_t got;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return 0;
    got = read(fd, stat, sizeof stat - 1);
    close(fd);
    stat[got > 0 ? got : 0] = '\0';
    behind_name = strrchr(stat, ')');
    return behind_name && behind_name[1] == ' ' ? behind_name[2] : 0;
}

static void look_again(struct stuck *stuck)
{
    const double pause = fmin(fmax(stuck->limit / 10, 0.01), 5);
    const struct timeval time = { (time_t)pause, (suseconds_t)(fmod(pause, 1) * 1e6) };

    event_add(&stuck->look, &time);
}

static void look(evutil_socket_t fd, short what, void *arg)
{
    struct stuck *stuck = arg;
    const int64_t now = clock_ms();

    (void)fd;
    (void)what;
    for (int i = 0; i < stuck->size; i++) {
        if (!stuck->workers[i].running || state_of(stuck->workers[i].pid) != 'D')
            stuck->since[i] = 0;
        else if (stuck->since[i] == 0)
            stuck->since[i] = now;
        else if ((double)(now - stuck->since[i]) >= stuck->limit * 1000) {
            stuck->found(stuck->arg, i);
            return;
        }
    }
    look_again(stuck);
}

/* torchrun reads a float; what is none, or not above 0, means off. */
int stuck_open(struct stuck *stuck, struct event_base *base, const struct worker *workers, int size,
               void (*found)(void *arg, int local_rank), void *arg)
{
    const char *text = getenv("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT");
    char *end = NULL;
    const double limit = text && *text ? strtod(text, &end) : 0;

    *stuck = (struct stuck){ .workers = workers, .size = size, .found = found, .arg = arg };
    if (!end || *end || !(limit > 0) || limit > 1e9)
        return 0;
    if (!(stuck->since = calloc((size_t)size, sizeof *stuck->since)))
        return -1;
    stuck->limit = limit;
    evtimer_assign(&stuck->look, base, look, stuck);
    return 0;
}

void stuck_begin(struct stuck *stuck)
{
    if (stuck->limit > 0) {
        memset(stuck->since, 0, (size_t)stuck->size * sizeof *stuck->since);
        look_again(stuck);
    }
}

void stuck_end(struct stuck *stuck)
{
    if (stuck->limit > 0)
        event_del(&stuck->look);
}

void stuck_close(struct stuck *stuck)
{
    stuck_end(stuck);
    free(stuck->since);
    *stuck = (struct stuck){ .limit = 0 };
}
