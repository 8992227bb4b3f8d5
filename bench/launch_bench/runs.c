/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c - see runs.h.
 *
 * launch_bench adopts what a launcher leaves behind (PR_SET_CHILD_SUBREAPER in
 * main.c), so the end of a run is: no child left.  Launchers write to /dev/null;
 * what they print about failures that launch_bench caused is no news. */
#include "bench/launch_bench/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Figures ----------------------------------------------------------------------------- */

static struct figure *find(struct figures *figures, const char *launcher, const char *name)
{
    for (int i = 0; i < figures->count; i++)
        if (!strcmp(figures->list[i].name, name) && !strcmp(figures->list[i].launcher, launcher))
            return &figures->list[i];
    figures->list = realloc(figures->list, (size_t)(figures->count + 1) * sizeof *figures->list);
    if (!figures->list)
        die("memory");
    figures->list[figures->count] = (struct figure){ .launcher = launcher };
    snprintf(figures->list[figures->count].name, sizeof figures->list->name, "%s", name);
    return &figures->list[figures->count++];
}

void figure_add(struct figures *figures, const char *launcher, const char *unit, double value,
                const char *format, ...)
{
    struct figure *figure;
    char name[48];
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    figure = find(figures, launcher, name);
    figure->unit = unit;
    if (figure->count == figure->room) {
        figure->room = figure->room ? 2 * figure->room : 32;
        figure->values = realloc(figure->values, (size_t)figure->room * sizeof *figure->values);
        if (!figure->values)
            die("memory");
    }
    figure->values[figure->count++] = value;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void figures_print(struct figures *figures)
{
    for (int i = 0; i < figures->count; i++) {
        struct figure *f = &figures->list[i];

        qsort(f->values, (size_t)f->count, sizeof *f->values, ascending);
        printf("case=%s unit=%s launcher=%s median=%.6g min=%.6g runs=%d\n", f->name, f->unit,
               f->launcher, f->values[f->count / 2], f->values[0], f->count);
        free(f->values);
    }
    free(figures->list);
    *figures = (struct figures){ 0 };
}

/* ---- Runs -------------------------------------------------------------------------------- */

#define LIMIT_MS 20000
#define SLOW_MS 400
#define MOST_HANGS 2
#define MOST_WORDS 32

extern char **environ;

void die(const char *what)
{
    fprintf(stderr, "launch_bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void reap_the_rest(void)
{
    char path[64];
    int pid, status;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    while (waitpid(-1, &status, WNOHANG) >= 0) {
        FILE *children = fopen(path, "r");

        while (children && fscanf(children, "%d", &pid) == 1)
            kill(pid, SIGKILL);
        if (children)
            fclose(children);
        usleep(500);
    }
}

/* The words of the command in room; n in place of %d. */
static void split(char *room, size_t size, const char *command, int n, char **words)
{
    char count[16], *next = NULL;
    int used = 0;
    const char *mark = strstr(command, "%d");

    snprintf(count, sizeof count, "%d", n);
    snprintf(room, size, "%.*s%s%s", mark ? (int)(mark - command) : (int)strlen(command), command,
             mark ? count : "", mark ? mark + 2 : "");
    for (char *word = strtok_r(room, " ", &next); word && used < MOST_WORDS - 4;
         word = strtok_r(NULL, " ", &next))
        words[used++] = word;
    words[used] = NULL;
}

struct run run_start(struct bench *bench, struct launcher *launcher, int workers,
                     const char *program, const char *mode)
{
    char room[4096], *words[MOST_WORDS], text[16];
    posix_spawn_file_actions_t quiet;
    struct run run = { 0 };
    int used = 0, error;

    snprintf(text, sizeof text, "%s", mode ? mode : "");
    split(room, sizeof room, launcher->command, workers, words);
    while (words[used])
        used++;
    words[used++] = program ? (char *)(uintptr_t)program : bench->worker;
    words[used++] = program ? NULL : bench->page_path;
    words[used++] = text;
    words[used] = NULL;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&quiet, 0, 1);
    posix_spawn_file_actions_adddup2(&quiet, 0, 2);
    memset(bench->page, 0, sizeof *bench->page);
    run.began = stamp();
    error = posix_spawnp(&run.pid, words[0], &quiet, NULL, words, environ);
    if (error) {
        errno = error;
        die(words[0]);
    }
    posix_spawn_file_actions_destroy(&quiet);
    return run;
}

static int ends_within(struct run *run, int limit_ms)
{
    struct pollfd end = { (int)syscall(SYS_pidfd_open, run->pid, 0), POLLIN, 0 };
    struct rusage used;
    int ended;

    if (end.fd < 0)
        die("pidfd_open");
    ended = poll(&end, 1, limit_ms) > 0;
    close(end.fd);
    if (!ended)
        return 0;
    wait4(run->pid, NULL, 0, &used);
    run->ended = stamp();
    run->cpu_ms = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3
                  + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
    return 1;
}

int run_wait(struct launcher *launcher, struct run *run)
{
    const int ended = ends_within(run, LIMIT_MS);

    reap_the_rest();
    if (!ended || run->ended - run->began > SLOW_MS * 1000000LL)
        launcher->slow = 1;
    return ended ? 0 : -1;
}

int run_ready(struct bench *bench, struct run *run, int workers)
{
    for (int waited = 0; waited < LIMIT_MS; waited++, usleep(1000))
        if (atomic_load(&bench->page->ready) == workers)
            return 0;
    run_stop(run);
    return -1;
}

void run_stop(struct run *run)
{
    kill(run->pid, SIGTERM);
    ends_within(run, LIMIT_MS);
    reap_the_rest();
}

void interleave(struct bench *bench, int rounds, int workers,
                int (*round)(struct bench *bench, struct launcher *launcher, int workers))
{
    int hangs[MOST_LAUNCHERS] = { 0 };

    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < bench->count; i++) {
            const int at = (r + i) % bench->count;
            struct launcher *launcher = &bench->launchers[at];

            if (hangs[at] >= MOST_HANGS || (launcher->slow && r >= 3 && r % 10 != 0))
                continue;
            if (round(bench, launcher, workers) < 0 && ++hangs[at] == MOST_HANGS)
                fprintf(stderr,
                        "%s with %d workers: %d runs did not end in %d s, no more of them\n",
                        launcher->name, workers, MOST_HANGS, LIMIT_MS / 1000);
        }
}
