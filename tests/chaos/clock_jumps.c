/* SPDX-License-Identifier: Apache-2.0 */
/* clock_jumps.c - preloaded by scripts/chaos: the wall clock jumps by an hour between two
 * looks at it, and back.  What counts on CLOCK_REALTIME for a duration then waits an hour. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static _Atomic unsigned looks;

static time_t jump(void)
{
    static const time_t by[] = { 3600, 0, -3600, 0 };

    return by[atomic_fetch_add(&looks, 1) % 4];
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const long error = syscall(SYS_clock_gettime, clock, now);

    if (error == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += jump();
    return (int)error;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec time;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (now)
        *now = t.tv_sec;
    return t.tv_sec;
}
