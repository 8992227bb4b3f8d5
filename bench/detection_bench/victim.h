/* SPDX-License-Identifier: Apache-2.0 */
/* victim.h - a rank's death, the same for libct's ranks, MPI's and those of no library. */
#ifndef DETECTION_BENCH_VICTIM_H
#define DETECTION_BENCH_VICTIM_H

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/detection_bench/page.h"

/* NULL: no such file. */
static inline struct page *page_open(const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    void *page = fd < 0
                     ? MAP_FAILED
                     : mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    return page == MAP_FAILED ? NULL : page;
}

/* The first of the variables that is set, as a number. */
static inline int number_of(const char *const *names, int otherwise)
{
    for (; *names; names++) {
        const char *value = getenv(*names);

        if (value && *value)
            return atoi(value);
    }
    return otherwise;
}

static inline void short_sleep(void)
{
    const struct timespec moment = { 0, 200000 };

    nanosleep(&moment, NULL);
}

static inline _Noreturn void die_now(struct page *page)
{
    atomic_store(&page->death, stamp());
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* Dies when all others are in their calls, or about to be, and the delay is over. */
static inline _Noreturn void die_when_they_wait(struct page *page, int size)
{
    const struct timespec delay = { page->delay_ns / 1000000000, page->delay_ns % 1000000000 };

    for (int rank = 0; rank < size; rank++)
        while (rank != page->victim && atomic_load(&page->called[rank]) == 0)
            short_sleep();
    nanosleep(&delay, NULL);
    die_now(page);
}

#endif
