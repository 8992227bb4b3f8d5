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
 * gives each worker a session of its own besides. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench/launch_bench/modes.h"
#include "bench/launch_bench/runs.h"

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
