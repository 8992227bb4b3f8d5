/* SPDX-License-Identifier: Apache-2.0 */
/* deaths.c - see deaths.h.
 *
 * Who survives under a launcher may be killed without a word, so an end is seen here, by a pidfd
 * that is opened while all still live; SIGTERM, where it comes, is stamped by who got it.
 * Deaths come 1 to 120 ms after the last call began, evenly in the logarithm: ranks that still
 * spin are met and ranks that have slept long.  Launchers that look once in 100 ms shall not
 * always be met at the same moment: for them 50 to 150 ms. */
#include "bench/detection_bench/deaths.h"

#include <ctype.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define START_MS 60000
#define LAUNCHER_MS 10000 /* whoever is told by a launcher always is, in the end */

/* The same for each system in the same run: they see the same deaths. */
static double chance(int run)
{
    uint64_t x = (uint64_t)run * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)((x ^ x >> 31) >> 11) / 9007199254740992.0;
}

static int64_t delay_ns(const struct system *system, int run)
{
    const double u = chance(run);

    return (int64_t)(system->by_signal ? 50e6 + 100e6 * u : 1e6 * pow(120, u));
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- Watching the processes end ------------------------------------------------- */

struct ends {
    struct pollfd fds[MOST_RANKS + 1]; /* of the ranks; of the launcher */
    int64_t when[MOST_RANKS + 1];
    int count;
};

static void ends_open(struct ends *ends, const struct job *job, const struct page *page)
{
    ends->count = job->row->layout->ranks + 1;
    for (int i = 0; i < ends->count; i++) {
        const pid_t pid = i + 1 < ends->count ? (pid_t)page->pid[i] : job->pids[0];

        ends->when[i] = 0;
        ends->fds[i] = (struct pollfd){ (int)syscall(SYS_pidfd_open, pid, 0), POLLIN, 0 };
        if (ends->fds[i].fd < 0)
            die("pidfd_open");
    }
}

static void ends_look(struct ends *ends, int ms)
{
    poll(ends->fds, (nfds_t)ends->count, ms);
    for (int i = 0; i < ends->count; i++)
        if (ends->fds[i].revents && !ends->when[i]) {
            ends->when[i] = stamp();
            close(ends->fds[i].fd);
            ends->fds[i].fd = -1;
        }
}

static void ends_close(struct ends *ends)
{
    for (int i = 0; i < ends->count; i++)
        if (ends->fds[i].fd >= 0)
            close(ends->fds[i].fd);
    ends->count = 0;
}

/* ---- Waiting -------------------------------------------------------------------- */

/* All have said who they are, and the survivors are in their calls. */
static int all_there(const struct row *row, struct page *page)
{
    for (int rank = 0; rank < row->layout->ranks; rank++)
        if (!atomic_load(&page->pid[rank])
            || (rank != page->victim && !atomic_load(&page->called[rank])))
            return 0;
    return 1;
}

/* 0 when the victim has died, with all ends open if they are watched. */
static int wait_for_death(struct job *job, struct page *page, struct ends *ends)
{
    const int64_t limit = stamp() + START_MS * 1000000LL;

    while (!atomic_load(&page->death)) {
        if (stamp() > limit || (job->system->start == LAUNCHED && job_is_over(job)))
            return -1;
        if (job->system->by_signal && ends->count == 0 && all_there(job->row, page))
            ends_open(ends, job, page);
        usleep(1000);
    }
    return 0;
}

static int everybody_knows(const struct row *row, struct page *page, const struct ends *ends)
{
    for (int rank = 0; rank < row->layout->ranks; rank++)
        if (row_waits(row, rank, (int)page->victim) && !atomic_load(&page->returned[rank])
            && !(ends->count && ends->when[rank]))
            return 0;
    return !ends->count || ends->when[ends->count - 1];
}

/* ---- Results -------------------------------------------------------------------- */

static int names(const char *sentence, int rank)
{
    char name[24];
    const int length = snprintf(name, sizeof name, "rank %d", rank);

    for (const char *at = sentence; (at = strstr(at, name)); at += length)
        if (!isdigit((unsigned char)at[length]))
            return 1;
    return 0;
}

static void print_line(const struct job *job, int run, const struct page *page, int rank,
                       int64_t knew)
{
    printf("%s,%s,%s,%d,%d,%d,", job->row->kind->place, job->row->layout->name, job->system->name,
           run, (int)page->victim, rank);
    if (knew)
        printf("%.4f",
               (double)(knew - later(page->death, rank < 0 ? 0 : page->called[rank])) / 1e6);
    else
        printf("never");
    if (rank < 0 || !knew)
        printf(",,,\n");
    else if (job->system->by_signal)
        printf(",%s,,\n", page->told[rank] ? "SIGTERM" : "killed");
    else
        printf(",%d,%d,%s\n", (int)page->status[rank],
               names(page->sentence[rank], (int)page->victim), page->sentence[rank]);
}

static int report(const struct job *job, int run, struct page *page, const struct ends *ends)
{
    int never = 0;

    for (int rank = 0; rank < job->row->layout->ranks; rank++) {
        int64_t knew = atomic_load(&page->returned[rank]);

        if (!row_waits(job->row, rank, (int)page->victim))
            continue;
        if (ends->count)
            knew = page->told[rank] ? page->told[rank] : ends->when[rank];
        print_line(job, run, page, rank, knew);
        never += !knew;
    }
    if (ends->count) {
        print_line(job, run, page, -1, ends->when[ends->count - 1]);
        print_line(job, run, page, -2, ends->when[page->victim]);
    }
    return never;
}

int death_run(struct system *system, const struct row *row, int run, struct page *page,
              const char *path, int limit_ms)
{
    struct ends ends = { .count = 0 };
    struct job job;
    int64_t limit;
    int never = -1;

    memset(page, 0, sizeof *page);
    page->victim = row_victim(row, run);
    page->delay_ns = delay_ns(system, run);
    job_start(&job, system, row, path);
    if (wait_for_death(&job, page, &ends) == 0 && (ends.count > 0) == system->by_signal) {
        if (system->by_signal && limit_ms < LAUNCHER_MS)
            limit_ms = LAUNCHER_MS;
        limit = stamp() + limit_ms * 1000000LL;
        while (stamp() < limit && !everybody_knows(row, page, &ends)) {
            if (ends.count > 0)
                ends_look(&ends, 100);
            else
                usleep(1000);
        }
        never = report(&job, run, page, &ends);
    }
    ends_close(&ends);
    job_end(&job, page);
    return never;
}
