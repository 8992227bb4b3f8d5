/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - from the death of a rank until the others know, wherever they wait.
 *
 *   detection_bench --page=FILE [--runs=N] [--limit=MS] [--node=WORDS]... SYSTEM=COMMAND...
 * [PLACE...]
 *
 * A row goes round the systems, one death at a time, so that what else the machine does hits all
 * alike.  SYSTEM@2 is a command for rows of two nodes, where --node (twice) are the words that
 * bring it to a node.  Lines on stdout are described at death_run(); bench/detection
 * says what they mean.  A survivor that does not know within the limit is seen once:
 * then the system is left out of that row, as it is after three runs that did not come to be.
 *
 * A launcher may kill a survivor without a signal that it could handle, so an end is seen here, by
 * a pidfd that is opened while all still live; a rank that gets SIGTERM stamps it.
 * Deaths come 1 to 120 ms after the last call began, evenly in the logarithm: some ranks still
 * spin then, some have slept long.  A launcher that polls every 100 ms shall not always be met at
 * the same moment: for launchers it is 50 to 150 ms. */
#include "bench/detection_bench/systems.h"
#include "bench/progress.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct limits {
    int runs;     /* of ours; the others have fewer, see systems.c */
    int limit_ms; /* a rank that does not know by then never does */
};

/* ---- A death ----------------------------------------------------------------------------- */

#define START_MS 60000
#define LAUNCHER_MS 10000 /* a launcher always signals the survivors, in the end */

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

/* Starts the row's ranks under the system, has the victim of that run die, and prints a line for
 * each survivor:
 *
 *   PLACE,LAYOUT,SYSTEM,RUN,VICTIM,RANK,MS,STATUS,NAMED,SENTENCE
 *
 * MS is "never" behind the limit.  STATUS and NAMED (the sentence has the victim's name) are of
 * the call that returned; of a survivor under a launcher, STATUS is SIGTERM or killed.  RANK is
 * -1 for the end of the launcher, -2 for that of the victim, as a pidfd tells it.
 * The number of survivors that never knew; -1 when the run did not come to the death. */
static int death_run(struct system *system, const struct row *row, int run, struct page *page,
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

/* ---- All rows ---------------------------------------------------------------------------- */

#define MOST_FAILURES 3

struct bench {
    struct limits limits;
    struct page *page;
    const char *path;
    char **places; /* NULL: all */
    int place_count;
    struct progress progress;
};

static int usage(void)
{
    fprintf(stderr, "usage: detection_bench --page=FILE [--runs=N] [--limit=MS] [--node=WORDS]... "
                    "SYSTEM=COMMAND... [PLACE...]\n");
    return 2;
}

/* A file, since ranks under a launcher get it by name. */
static void share_page(struct bench *bench)
{
    const int fd = open(bench->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || ftruncate(fd, sizeof *bench->page) < 0)
        die(bench->path);
    bench->page = mmap(NULL, sizeof *bench->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bench->page == MAP_FAILED)
        die("mmap");
    close(fd);
}

static int wanted(const struct bench *bench, const char *place)
{
    for (int i = 0; i < bench->place_count; i++)
        if (!strcmp(bench->places[i], place))
            return 1;
    return bench->place_count == 0;
}

static int takes_part(const struct system *system, const struct row *row)
{
    const int ours = !strcmp(system->name, "ctrun") || !strcmp(system->name, "libct");

    /* A link is libct's affair: the others have one figure for one host.  Eight ranks of an MPI
     * that spins on few processors take longer to start than all the rest. */
    return system->command[row->layout->nodes - 1] && listed(row->kind->systems, system->name)
           && (!row->layout->link || ours) && (row->layout->ranks <= 4 || !system->by_signal);
}

static void run_row(struct bench *bench, const struct row *row)
{
    int failures[16] = { 0 };

    if (bench->progress.room == 0)
        fprintf(stderr, "%s %s ...\n", row->kind->place, row->layout->name);
    for (int run = 0; run < bench->limits.runs; run++) {
        progress_case(&bench->progress, "%s %s, run %d of %d", row->kind->place, row->layout->name,
                      run + 1, bench->limits.runs);
        for (int i = 0; i < system_count; i++) {
            const int at = (run + i) % system_count;
            const int64_t began = stamp();
            struct system *system = &systems[at];
            int never;

            if (!takes_part(system, row) || run % system->share || failures[at] >= MOST_FAILURES)
                continue;
            never = death_run(system, row, run, bench->page, bench->path, bench->limits.limit_ms);
            if (never < 0 && ++failures[at] == MOST_FAILURES) {
                progress_wipe(&bench->progress);
                fprintf(stderr, "%s: %d runs did not come to be, no more of them\n", system->name,
                        MOST_FAILURES);
            }
            if (never > 0)
                failures[at] = MOST_FAILURES;
            system->spent_ns += stamp() - began;
            fflush(stdout);
        }
    }
}

/* Calls `run` for all rows that are wanted, unless it is NULL.  Returns how many there are. */
static int all_rows(struct bench *bench, int nodes,
                    void (*run)(struct bench *bench, const struct row *row))
{
    int rows = 0;

    for (int kind = 0; kind < row_kind_count; kind++) {
        struct row row;

        for (int position = 0; row_next(&row_kinds[kind], &position, &row);)
            if (wanted(bench, row.kind->place) && (row.layout->nodes == 1 || nodes > 1)) {
                rows++;
                if (run)
                    run(bench, &row);
            }
    }
    return rows;
}

/* SYSTEM=COMMAND or SYSTEM@2=COMMAND; 0 if it is something else. */
static int take_system(char *word)
{
    char *equals = strchr(word, '='), *at = strchr(word, '@');
    struct system *system;

    if (!equals)
        return 0;
    *equals = 0;
    if (at && at < equals)
        *at = 0;
    system = system_find(word);
    if (system)
        system->command[at && at < equals] = equals + 1;
    return system != NULL;
}

int main(int argc, char **argv)
{
    struct bench bench = { .limits = { .runs = 100, .limit_ms = 10000 } };
    int nodes = 0, i;

    for (i = 1; i < argc && strchr(argv[i], '='); i++) {
        if (!strncmp(argv[i], "--page=", 7))
            bench.path = argv[i] + 7;
        else if (!strncmp(argv[i], "--runs=", 7))
            bench.limits.runs = atoi(argv[i] + 7);
        else if (!strncmp(argv[i], "--limit=", 8))
            bench.limits.limit_ms = atoi(argv[i] + 8);
        else if (!strncmp(argv[i], "--node=", 7) && nodes < MOST_NODES)
            node_words[nodes++] = argv[i] + 7;
        else if (!take_system(argv[i]))
            return usage();
    }
    if (!bench.path)
        return usage();
    bench.places = argv + i;
    bench.place_count = argc - i;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        die("prctl");
    share_page(&bench);
    progress_begin(&bench.progress, "detection", all_rows(&bench, nodes, NULL) * bench.limits.runs);
    all_rows(&bench, nodes, run_row);
    progress_wipe(&bench.progress);
    servers_stop();
    for (int s = 0; s < system_count; s++)
        fprintf(stderr, "%s %.0f s%s", systems[s].name, (double)systems[s].spent_ns / 1e9,
                s + 1 < system_count ? ", " : "\n");
    return 0;
}
