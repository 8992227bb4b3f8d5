/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - clocks and deadlines. */
#ifndef RUNTIME_UTIL_CLOCK_H
#define RUNTIME_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* A deadline is an absolute time of the monotonic clock in milliseconds.  NO_DEADLINE never
 * passes. */
#define NO_DEADLINE INT64_MAX

static inline int64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t clock_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static inline int64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns the monotonic time in nanoseconds, which may lag by a few milliseconds.  This clock costs
 * a tenth of clock_ms(), so every call of libct can read it. */
static inline uint64_t clock_coarse_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline int64_t clock_coarse_ms(void)
{
    return (int64_t)(clock_coarse_ns() / 1000000);
}

/* Returns the start time in milliseconds of an operation with a limit of limit_ms.  Only a limit
 * below SHORT_LIMIT_MS needs a finer clock than the coarse one. */
#define SHORT_LIMIT_MS 10000
static inline int64_t clock_of_start(int limit_ms, uint64_t coarse_ns)
{
    return limit_ms < SHORT_LIMIT_MS ? clock_ms() : (int64_t)(coarse_ns / 1000000);
}

/* Returns the deadline that is timeout_ms from now, or NO_DEADLINE if timeout_ms is negative. */
static inline int64_t deadline_after(int64_t timeout_ms)
{
    return timeout_ms < 0 ? NO_DEADLINE : clock_ms() + timeout_ms;
}

/* Returns the milliseconds left until the deadline, from 0 to `most`.  poll() can take the result
 * as its timeout. */
static inline int time_left_ms(int64_t deadline, int most)
{
    const int64_t left = deadline == NO_DEADLINE ? most : deadline - clock_ms();

    return left < 0 ? 0 : left > most ? most : (int)left;
}

#endif
