/* SPDX-License-Identifier: Apache-2.0 */
/* detection_worker - a rank that waits somewhere while another one dies, for detection_bench.
 *
 *   detection_worker PAGE PLACE
 *
 * Inits, makes one small all-reduce and a barrier with the others so that what is opened late is
 * open, and goes to its PLACE; the page's victim dies when all are there.  The rest stamp
 * when their call returned, write down what it said, and keep still until they are told to
 * leave.  PLACE `anywhere` is for launchers: no library, the others wait for a signal. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "bench/detection_bench/victim.h"
#include "include/ct.h"

struct place {
    const char *name;
    /* Waits for what the victim never does; what it returns is what the call did. */
    ct_status (*wait)(int victim, int rank, int size);
};

/* ---- Where a survivor can wait ----------------------------------------------------------- */

#define LARGE ((size_t)16 << 20) /* more than any buffer between two ranks takes */

static double numbers[2];

static ct_status in_all_reduce(int victim, int rank, int size)
{
    (void)victim, (void)rank, (void)size;
    return ct_all_reduce(CT_WORLD, numbers, numbers, 1, CT_F64, CT_SUM, NULL);
}

static ct_status in_broadcast(int victim, int rank, int size)
{
    (void)rank, (void)size;
    return ct_broadcast(CT_WORLD, numbers, 1, CT_F64, victim, NULL);
}

/* The root waits; what the others give may be on its way when they return. */
static ct_status in_reduce(int victim, int rank, int size)
{
    (void)rank;
    return ct_reduce(CT_WORLD, numbers, numbers + 1, 1, CT_F64, CT_SUM, (victim + 1) % size, NULL);
}

static ct_status in_barrier(int victim, int rank, int size)
{
    (void)victim, (void)rank, (void)size;
    return ct_barrier(CT_WORLD, NULL);
}

static ct_status in_wait(int victim, int rank, int size)
{
    ct_work *work;
    ct_status status;

    (void)victim, (void)rank, (void)size;
    status = ct_all_reduce(CT_WORLD, numbers, numbers, 1, CT_F64, CT_SUM, &work);
    return status == CT_OK ? ct_wait(work) : status;
}

static ct_status in_recv(int victim, int rank, int size)
{
    (void)rank, (void)size;
    return ct_recv(CT_WORLD, numbers, 1, CT_F64, victim, 0, NULL);
}

static ct_status in_send(int victim, int rank, int size)
{
    char *much = calloc(1, LARGE);
    ct_status status;

    (void)rank, (void)size;
    status = ct_send(CT_WORLD, much, LARGE, CT_U8, victim, 0);
    free(much);
    return status;
}

/* A key that no rank sets. */
static ct_status in_store(int victim, int rank, int size)
{
    void *value;
    size_t bytes;
    const ct_status status = ct_store_get(ct_store_default(), "never set", -1, &value, &bytes);

    (void)victim, (void)rank, (void)size;
    if (status == CT_OK)
        free(value);
    return status;
}

/* NULL: no such place. */
static const struct place *place_find(const char *name)
{
    static const struct place places[] = {
        { "all_reduce", in_all_reduce },
        { "broadcast", in_broadcast },
        { "reduce", in_reduce },
        { "barrier", in_barrier },
        { "wait", in_wait },
        { "recv", in_recv },
        { "send", in_send },
        { "store", in_store },
        { "store-host", in_store },
    };

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!strcmp(places[i].name, name))
            return &places[i];
    return NULL;
}

/* ---- The rank ---------------------------------------------------------------------------- */

static struct page *page; /* the handlers' */
static int rank;

/* ---- Notes in the page -------------------------------------------------------- */

static void wait_to_leave(void)
{
    while (!atomic_load(&page->leave))
        short_sleep();
    _exit(0); /* a broken group has nothing to take leave of */
}

static void note(ct_status status, int64_t when)
{
    page->status[rank] = status;
    snprintf(page->sentence[rank], SENTENCE, "%s", status == CT_OK ? "" : ct_last_error());
    atomic_store(&page->returned[rank], when);
}

static void told(int signal_number)
{
    (void)signal_number;
    atomic_store(&page->told[rank], stamp());
    _exit(0);
}

static void wait_for_a_signal(int size)
{
    signal(SIGTERM, told);
    atomic_store(&page->called[rank], stamp());
    if (rank == page->victim)
        die_when_they_wait(page, size);
    for (;;)
        pause();
}

/* ---- In init ------------------------------------------------------------------ */

static void time_is_up(int signal_number)
{
    (void)signal_number;
    die_now(page);
}

/* init-before: the victim has not called it.  init-within: it has, and all wait there for the last
 * rank, who is held back until the victim is dead. */
static void die_in_init(const char *place, int size)
{
    const int last = page->victim == size - 1 ? size - 2 : size - 1;
    const int within = !strcmp(place, "init-within");
    ct_status status;

    if (rank == page->victim && !within)
        die_when_they_wait(page, size);
    if (rank == page->victim) {
        const struct itimerval delay = { .it_value = { page->delay_ns / 1000000000,
                                                       page->delay_ns / 1000 % 1000000 + 1 } };

        signal(SIGALRM, time_is_up);
        setitimer(ITIMER_REAL, &delay, NULL);
    } else if (within && rank == last) {
        while (!atomic_load(&page->death))
            short_sleep();
    }
    atomic_store(&page->called[rank], stamp());
    status = ct_init_process_group(NULL);
    note(status, stamp());
    wait_to_leave();
}

/* ---- Elsewhere ---------------------------------------------------------------- */

static int cannot(const char *what)
{
    fprintf(stderr, "detection_worker: rank %d: %s: %s\n", rank, what, ct_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    static const char *const ranks[] = { "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", NULL };
    static const char *const sizes[] = { "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL };
    const int size = number_of(sizes, 1);
    const struct place *place = NULL;
    double one = 1;
    ct_status status;

    rank = number_of(ranks, 0);
    page = argc == 3 ? page_open(argv[1]) : NULL;
    if (!page || rank < 0 || rank >= MOST_RANKS)
        return 2;
    alarm(120); /* so that no worker is left when the benchmark is killed */
    atomic_store(&page->pid[rank], getpid());
    if (!strcmp(argv[2], "anywhere"))
        wait_for_a_signal(size);
    if (!strncmp(argv[2], "init-", 5))
        die_in_init(argv[2], size);
    if (!(place = place_find(argv[2])))
        return 2;

    if (ct_init_process_group(NULL) != CT_OK)
        return cannot("init");
    if (ct_all_reduce(CT_WORLD, &one, &one, 1, CT_F64, CT_SUM, NULL) != CT_OK
        || ct_barrier(CT_WORLD, NULL) != CT_OK)
        return cannot("the first collectives");
    if (rank == page->victim)
        die_when_they_wait(page, size);
    atomic_store(&page->called[rank], stamp());
    status = place->wait((int)page->victim, rank, size);
    note(status, stamp());
    wait_to_leave();
}
