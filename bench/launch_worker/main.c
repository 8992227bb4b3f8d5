/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the worker of launch_bench: writes down when what happened to it.
 *
 *   launch_worker PAGE leave    stamp and exit
 *   launch_worker PAGE idle     stamp and wait for the end
 *   launch_worker PAGE die      as idle; when all N are up, one dies of SIGKILL
 *
 * Linked statically: a dynamic loader's 0.4 ms would be on the bill of every
 * launcher.  The first line of main takes the time, before anything is opened. */
#include "bench/launch_bench/page.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct page *page; /* the handler's */
static int rank;

static int number(const char *const *names, int otherwise)
{
    for (; *names; names++) {
        const char *value = getenv(*names);

        if (value && *value)
            return atoi(value);
    }
    return otherwise;
}

static void told(int signal_number)
{
    (void)signal_number;
    page->told[rank] = stamp();
    _exit(0);
}

/* A launcher that looks once in a while must not always be met at the same
 * moment of its period, so the delay differs from run to run. */
static void die_when_all_are_up(int size)
{
    const struct timespec moment = { 0, 1000000 };
    const struct timespec quiet = { 0, 50000000 + stamp() / 1000 % 100 * 1000000 };

    while (atomic_load(&page->ready) < size)
        nanosleep(&moment, NULL);
    nanosleep(&quiet, NULL);
    page->death = stamp();
    raise(SIGKILL);
}

int main(int argc, char **argv)
{
    static const char *const ranks[] = { "RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", NULL };
    static const char *const sizes[] = { "WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", NULL };
    static const char *const attempts[] = { "TORCHELASTIC_RESTART_COUNT", NULL };
    const int64_t now = stamp();
    const int attempt = number(attempts, 0) > 0;
    const int fd = argc == 3 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;

    rank = number(ranks, 0);
    if (fd < 0 || rank < 0 || rank >= MOST_WORKERS)
        return 2;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return 2;
    page->first[attempt][rank] = now;
    if (!strcmp(argv[2], "leave") || attempt > 0)
        return 0;
    signal(SIGTERM, told);
    alarm(120); /* so that no worker is left when the benchmark is killed */
    atomic_fetch_add(&page->ready, 1);
    if (!strcmp(argv[2], "die") && rank == VICTIM)
        die_when_all_are_up(number(sizes, 1));
    for (;;)
        pause();
}
