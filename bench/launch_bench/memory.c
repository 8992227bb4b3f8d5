/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - what a launcher holds, and does, while its workers idle.
 *
 * rss and hwm are of the launcher's own process, the one that the user started.
 * pss, wakeups and processor time are of all its processes (guard, proxy, helper
 * threads), the workers left out: /proc is searched for its descendants. */
#include "bench/launch_bench/runs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_PROCESSES 64
#define IDLE_SECONDS 5

struct family {
    pid_t pids[MOST_PROCESSES];
    int count;
};

/* "VmRSS:   1234 kB": the first number behind name. */
static double field(pid_t pid, const char *file, const char *name)
{
    char path[64], line[256];
    double value = 0;
    FILE *in;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in))
        if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':') {
            value = strtod(line + strlen(name) + 1, NULL);
            break;
        }
    if (in)
        fclose(in);
    return value;
}

static int is_worker(const struct bench *bench, pid_t pid)
{
    char path[64], program[4096];
    ssize_t length;

    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    length = readlink(path, program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    return !strcmp(program, bench->worker);
}

static int belongs(const struct family *family, pid_t pid)
{
    for (int i = 0; i < family->count; i++)
        if (family->pids[i] == pid)
            return 1;
    return 0;
}

/* A child may have a smaller number than its parent, so until nothing is added. */
static void find_family(const struct bench *bench, pid_t head, struct family *family)
{
    int before;

    *family = (struct family){ { head }, 1 };
    do {
        DIR *processes = opendir("/proc");

        before = family->count;
        for (struct dirent *entry; processes && (entry = readdir(processes));) {
            const pid_t pid = atoi(entry->d_name);

            if (pid > 0 && family->count < MOST_PROCESSES && !belongs(family, pid)
                && belongs(family, (pid_t)field(pid, "status", "PPid")) && !is_worker(bench, pid))
                family->pids[family->count++] = pid;
        }
        if (processes)
            closedir(processes);
    } while (family->count > before);
}

static double sum(const struct family *family, const char *file, const char *name)
{
    double all = 0;

    for (int i = 0; i < family->count; i++)
        all += field(family->pids[i], file, name);
    return all;
}

static double processor_us(const struct family *family)
{
    double all = 0;

    for (int i = 0; i < family->count; i++) {
        struct timespec used;
        clockid_t clock;

        if (clock_getcpuclockid(family->pids[i], &clock) == 0 && clock_gettime(clock, &used) == 0)
            all += (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
    }
    return all;
}

static int memory_round(struct bench *bench, struct launcher *launcher, int workers)
{
    struct run run = run_start(bench, launcher, workers, NULL, "idle");
    struct family family;

    if (run_ready(bench, &run, workers) < 0)
        return -1;
    usleep(300000);
    find_family(bench, run.pid, &family);
    figure_add(&bench->figures, launcher->name, "KiB", field(run.pid, "status", "VmRSS"),
               "memory/%d/rss", workers);
    figure_add(&bench->figures, launcher->name, "KiB", field(run.pid, "status", "VmHWM"),
               "memory/%d/hwm", workers);
    figure_add(&bench->figures, launcher->name, "KiB", sum(&family, "smaps_rollup", "Pss"),
               "memory/%d/pss", workers);
    run_stop(&run);
    return 0;
}

/* Threads other than the main one have wake-ups of their own, which are not counted. */
static int idle_round(struct bench *bench, struct launcher *launcher, int workers)
{
    struct run run = run_start(bench, launcher, workers, NULL, "idle");
    double cpu, wakeups;
    struct family family;

    if (run_ready(bench, &run, workers) < 0)
        return -1;
    usleep(500000);
    find_family(bench, run.pid, &family);
    cpu = processor_us(&family);
    wakeups = sum(&family, "status", "voluntary_ctxt_switches");
    sleep(IDLE_SECONDS);
    figure_add(&bench->figures, launcher->name, "us", processor_us(&family) - cpu,
               "idle/%d/cpu-in-%ds", workers, IDLE_SECONDS);
    figure_add(&bench->figures, launcher->name, "times",
               sum(&family, "status", "voluntary_ctxt_switches") - wakeups,
               "idle/%d/wakeups-in-%ds", workers, IDLE_SECONDS);
    run_stop(&run);
    return 0;
}

void memory(struct bench *bench)
{
    static const int sizes[] = { 1, 4, 64 };

    for (int i = 0; i < 3; i++)
        interleave(bench, bench->quick ? 1 : 5, sizes[i], memory_round);
}

void idle(struct bench *bench)
{
    interleave(bench, bench->quick ? 1 : 3, 64, idle_round);
}
