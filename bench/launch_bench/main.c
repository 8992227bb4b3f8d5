/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - what does it cost to start and to end a job?
 *
 *   launch_bench [--quick] MODE NAME=COMMAND...
 *   launch_bench floor|sessions N PROGRAM [ARGUMENT]
 *
 * A COMMAND is a launcher and its options, separated by spaces, with %d for the
 * number of workers; the program is added.  A mode goes round the launchers, one run
 * of each, so that what else the machine does hits all alike.  One that takes seconds
 * gets three rounds and then every tenth.  Each figure is one line,
 *
 *   case=wall/64 unit=ms launcher=ctrun median=20.1 min=18.0 runs=31
 *
 * floor is a launcher that does nothing but posix_spawn() and waitpid(); sessions
 * gives each worker a session of its own besides.
 *
 * death and restart: the others obey SIGTERM at once, with exit code 0.  A launcher that sends
 * SIGKILL instead has no figure for sigterm. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/launch_bench/runs.h"

/* ---- Until N times /bin/true are over; until the first line of each worker's main -------- */

static const int sizes[] = { 1, 4, 16, 64 };

static int wall_round(struct bench *bench, struct launcher *launcher, int workers)
{
    struct run run = run_start(bench, launcher, workers, "/bin/true", NULL);

    if (run_wait(launcher, &run) < 0)
        return -1;
    figure_add(&bench->figures, launcher->name, "ms", (double)(run.ended - run.began) / 1e6,
               "wall/%d", workers);
    figure_add(&bench->figures, launcher->name, "ms", run.cpu_ms, "wall/%d/cpu", workers);
    return 0;
}

static int first_round(struct bench *bench, struct launcher *launcher, int workers)
{
    struct run run = run_start(bench, launcher, workers, NULL, "leave");
    const int64_t *stamps = bench->page->first[0];
    int64_t earliest = INT64_MAX, latest = 0;

    if (run_wait(launcher, &run) < 0)
        return -1;
    for (int i = 0; i < workers; i++) {
        earliest = stamps[i] < earliest ? stamps[i] : earliest;
        latest = stamps[i] > latest ? stamps[i] : latest;
    }
    if (earliest == 0) /* not all came */
        return 0;
    figure_add(&bench->figures, launcher->name, "ms", (double)(earliest - run.began) / 1e6,
               "first/%d/first", workers);
    if (workers > 1)
        figure_add(&bench->figures, launcher->name, "ms", (double)(latest - run.began) / 1e6,
                   "first/%d/last", workers);
    return 0;
}

static void for_all_sizes(struct bench *bench,
                          int (*round)(struct bench *bench, struct launcher *launcher, int workers))
{
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
        interleave(bench, bench->quick ? 5 : sizes[i] > 4 ? 31 : 61, sizes[i], round);
}

static void wall(struct bench *bench)
{
    for_all_sizes(bench, wall_round);
}

static void first(struct bench *bench)
{
    for_all_sizes(bench, first_round);
}

/* ---- From a death to the others' SIGTERM, to the end, to the next attempt ---------------- */

static double since_death(const struct bench *bench, int64_t when)
{
    return (double)(when - bench->page->death) / 1e6;
}

static int death_round(struct bench *bench, struct launcher *launcher, int workers)
{
    struct run run = run_start(bench, launcher, workers, NULL, "die");
    int64_t latest = 0;
    int told = 0;

    if (run_wait(launcher, &run) < 0)
        return -1;
    if (bench->page->death == 0)
        return 0;
    for (int i = 0; i < workers; i++) {
        told += bench->page->told[i] > 0;
        latest = bench->page->told[i] > latest ? bench->page->told[i] : latest;
    }
    if (told == workers - 1)
        figure_add(&bench->figures, launcher->name, "ms", since_death(bench, latest),
                   "death/%d/last-sigterm", workers);
    figure_add(&bench->figures, launcher->name, "ms", since_death(bench, run.ended),
               "death/%d/return", workers);
    return 0;
}

static int restart_round(struct bench *bench, struct launcher *launcher, int workers)
{
    struct run run = run_start(bench, launcher, workers, NULL, "die");
    int64_t earliest = INT64_MAX;

    if (run_wait(launcher, &run) < 0)
        return -1;
    for (int i = 0; i < workers; i++)
        if (bench->page->first[1][i] < earliest)
            earliest = bench->page->first[1][i];
    if (bench->page->death > 0 && earliest > 0)
        figure_add(&bench->figures, launcher->name, "ms", since_death(bench, earliest),
                   "restart/%d/first", workers);
    return 0;
}

static void death(struct bench *bench)
{
    interleave(bench, bench->quick ? 3 : 31, 4, death_round);
    interleave(bench, bench->quick ? 3 : 31, 16, death_round);
}

static void restart(struct bench *bench)
{
    interleave(bench, bench->quick ? 3 : 31, 4, restart_round);
    interleave(bench, bench->quick ? 3 : 31, 16, restart_round);
}

/* ---- What no launcher can do without: spawn N, wait for N -------------------------------- */

extern char **environ;

/* Our worker wants its rank.  One variable more, and no copy of the others. */
static int spawn_loop(char **words, int sessions)
{
    const int count = atoi(words[0]);
    posix_spawnattr_t how;
    int code = 0;
    pid_t pid;

    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, sessions ? POSIX_SPAWN_SETSID : 0);
    for (int i = 0; i < count; i++) {
        char rank[16] = { (char)('0' + i / 10), (char)('0' + i % 10) };

        setenv("RANK", rank, 1);
        if (posix_spawn(&pid, words[1], NULL, &how, words + 1, environ) != 0)
            code = 1;
    }
    posix_spawnattr_destroy(&how);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    return code;
}

/* ---- The program ------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(struct bench *bench);
} modes[] = {
    { "wall", wall },       { "first", first },   { "death", death },
    { "restart", restart }, { "memory", memory }, { "idle", idle },
};

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: launch_bench [--quick] MODE NAME=COMMAND...\n"
                    "       launch_bench floor|sessions N PROGRAM [ARGUMENT]\nmodes:");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        fprintf(stderr, " %s", modes[i].name);
    fprintf(stderr, "\n");
    exit(2);
}

/* Workers open the page by our descriptor's name in /proc: no file has to be removed. */
static void make_page(struct bench *bench)
{
    const int fd = memfd_create("launch_bench", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, sizeof *bench->page) < 0)
        die("memfd");
    bench->page = mmap(NULL, sizeof *bench->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bench->page == MAP_FAILED)
        die("mmap");
    snprintf(bench->page_path, sizeof bench->page_path, "/proc/%d/fd/%d", (int)getpid(), fd);
}

/* launch_worker lies beside launch_bench. */
static void find_worker(struct bench *bench)
{
    const ssize_t length = readlink("/proc/self/exe", bench->worker, sizeof bench->worker - 32);
    char *slash;

    if (length <= 0)
        die("/proc/self/exe");
    bench->worker[length] = '\0';
    slash = strrchr(bench->worker, '/');
    strcpy(slash + 1, "launch_worker");
    if (access(bench->worker, X_OK) < 0)
        die(bench->worker);
}

static void take_launchers(struct bench *bench, char **words)
{
    for (; *words; words++) {
        char *command = strchr(*words, '=');

        if (!command || bench->count == MOST_LAUNCHERS)
            usage();
        *command++ = '\0';
        bench->launchers[bench->count++] = (struct launcher){ *words, command, 0 };
    }
    if (bench->count == 0)
        usage();
}

int main(int argc, char **argv)
{
    struct bench bench = { 0 };
    int at = 1;

    if (argc >= 4 && (!strcmp(argv[1], "floor") || !strcmp(argv[1], "sessions")))
        return spawn_loop(argv + 2, *argv[1] == 's');
    bench.quick = argc > at && !strcmp(argv[at], "--quick");
    at += bench.quick;
    for (size_t i = 0; argc > at && i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(argv[at], modes[i].name)) {
            take_launchers(&bench, argv + at + 1);
            make_page(&bench);
            find_worker(&bench);
            prctl(PR_SET_CHILD_SUBREAPER, 1);
            modes[i].run(&bench);
            figures_print(&bench.figures);
            return 0;
        }
    usage();
}
