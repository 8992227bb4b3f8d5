/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - from the death of a rank until the others know, wherever they wait.
 *
 *   detection_bench --page=FILE [--runs=N] [--limit=MS] [--node=WORDS]... SYSTEM=COMMAND...
 * [PLACE...]
 *
 * A row goes round the systems, one death at a time, so that what else the machine does hits all
 * alike.  SYSTEM@2 is a command for rows of two nodes, where --node (twice) are the words that
 * bring it to a node.  Lines on stdout are described in deaths.h; what they mean is
 * bench/detection's to say.  A survivor that does not know within the limit is seen once:
 * then the system is left out of that row, as it is after three runs that did not come to be. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench/detection_bench/deaths.h"

#define MOST_FAILURES 3

struct bench {
    struct limits limits;
    struct page *page;
    const char *path;
    char **places; /* NULL: all */
    int place_count;
};

static int usage(void)
{
    fprintf(stderr, "usage: detection_bench --page=FILE [--runs=N] [--limit=MS] [--node=WORDS]... "
                    "SYSTEM=COMMAND... [PLACE...]\n");
    return 2;
}

/* A file, for who gets it by name through a launcher. */
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

    fprintf(stderr, "%s %s ...\n", row->kind->place, row->layout->name);
    for (int run = 0; run < bench->limits.runs; run++)
        for (int i = 0; i < system_count; i++) {
            const int at = (run + i) % system_count;
            const int64_t began = stamp();
            struct system *system = &systems[at];
            int never;

            if (!takes_part(system, row) || run % system->share || failures[at] >= MOST_FAILURES)
                continue;
            never = death_run(system, row, run, bench->page, bench->path, bench->limits.limit_ms);
            if (never < 0 && ++failures[at] == MOST_FAILURES)
                fprintf(stderr, "%s: %d runs did not come to be, no more of them\n", system->name,
                        MOST_FAILURES);
            if (never > 0)
                failures[at] = MOST_FAILURES;
            system->spent_ns += stamp() - began;
            fflush(stdout);
        }
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
    for (int kind = 0; kind < row_kind_count; kind++) {
        struct row row;

        for (int position = 0; row_next(&row_kinds[kind], &position, &row);)
            if (wanted(&bench, row.kind->place) && (row.layout->nodes == 1 || nodes > 1))
                run_row(&bench, &row);
    }
    servers_stop();
    for (int s = 0; s < system_count; s++)
        fprintf(stderr, "%s %.0f s%s", systems[s].name, (double)systems[s].spent_ns / 1e9,
                s + 1 < system_count ? ", " : "\n");
    return 0;
}
