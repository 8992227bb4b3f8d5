/* SPDX-License-Identifier: Apache-2.0 */
/* servers.c - see servers.h. */
#include "bench/store_bench/servers.h"
#include "bench/store_bench/stats.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/util/cpu_set.h"

struct server servers[MOST_SERVERS];
int server_count;
int quick;

/* What a thread used is booked when it goes to sleep: give it the time to. */
double cpu_seconds(const struct server *server)
{
    struct timespec t;
    clockid_t clock;

    usleep(300);
    if (!server->pid || clock_getcpuclockid(server->pid, &clock) || clock_gettime(clock, &t))
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double status_kib(const struct server *server, const char *field)
{
    char path[64], line[256];
    const size_t length = strlen(field);
    double kib = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)server->pid);
    file = fopen(path, "r");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, field, length) && line[length] == ':')
            kib = strtod(line + length + 1, NULL);
    fclose(file);
    return kib;
}

void let_settle(const struct server *server)
{
    double before, after = cpu_seconds(server);

    for (int i = 0; i < 100; i++) {
        before = after;
        usleep(10000);
        after = cpu_seconds(server);
        if (after - before < 1e-3)
            return;
    }
}

/* One cpu_set_t has room for 1,024 CPUs. */
enum { SETS = CPUS_MOST / CPU_SETSIZE, NO_CPU = CPUS_MOST };

static void pin(pid_t thread, enum place place)
{
    static cpu_set_t allowed[SETS]; /* before the first pin() */
    cpu_set_t set[SETS];
    size_t chosen = NO_CPU;

    if (CPU_COUNT_S(sizeof allowed, allowed) == 0)
        sched_getaffinity(0, sizeof allowed, allowed);
    memcpy(set, allowed, sizeof set);
    for (size_t cpu = 0; cpu < CPUS_MOST && place != ANYWHERE; cpu++)
        if (CPU_ISSET_S(cpu, sizeof allowed, allowed) && (chosen == NO_CPU || place == LAST))
            chosen = cpu;
    if (chosen != NO_CPU) {
        CPU_ZERO_S(sizeof set, set);
        CPU_SET_S(chosen, sizeof set, set);
    }
    sched_setaffinity(thread, sizeof set, set);
}

static void pin_servers(enum place place)
{
    for (int s = 0; s < server_count; s++) {
        char path[64];
        struct dirent *entry;
        DIR *threads;

        snprintf(path, sizeof path, "/proc/%d/task", (int)servers[s].pid);
        threads = servers[s].pid ? opendir(path) : NULL;
        while (threads && (entry = readdir(threads)))
            if (entry->d_name[0] != '.')
                pin((pid_t)atoi(entry->d_name), place);
        if (threads)
            closedir(threads);
    }
}

void place_all(enum place client, enum place all_servers)
{
    pin(0, client);
    pin_servers(all_servers);
}
