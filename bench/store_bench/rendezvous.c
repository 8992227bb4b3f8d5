/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.c - W clients connect, VALIDATE, PING, ADD 1; the W-th sets a key; all
 * WAIT and GET it: until the last has it.  Once with all in one thread, once with
 * a thread each. */
#include "bench/store_bench/crowd.h"
#include "bench/store_bench/modes.h"
#include "bench/store_bench/stats.h"

#include <errno.h>

#define MOST_ROUNDS 64

/* Returns 0 or an errno. */
typedef int meeting(const struct server *server, int size, double *seconds, double *cpu);

static int crowd_meeting(const struct server *server, int size, double *seconds, double *cpu)
{
    const double cpu_start = cpu_seconds(server), start = now();
    struct crowd crowd;
    int error = 0;

    crowd_init(&crowd, server, size);
    if (crowd_meets(&crowd, start + LIMIT_SECONDS) < 0)
        error = errno;
    *seconds = now() - start;
    *cpu = cpu_seconds(server) - cpu_start;
    crowd_leave(&crowd);
    return error;
}

/* What one server needed. */
struct record {
    double wall[MOST_ROUNDS], cpu[MOST_ROUNDS], spent;
    size_t n;
    int error;
};

static void print_records(const char *name, int size, struct record *records)
{
    for (int s = 0; s < server_count; s++) {
        struct record *r = &records[s];

        figure(&servers[s], "ms", verdict(r->error, quantile(r->wall, r->n, 0.5)), "%s/%d", name,
               size);
        figure(&servers[s], "ms", verdict(r->error, quantile(r->wall, r->n, 0)), "%s/%d/min", name,
               size);
        figure(&servers[s], "ms", verdict(r->error, quantile(r->cpu, r->n, 0.5)),
               "%s/%d/server-cpu", name, size);
    }
}

static void rendezvous_of(const char *name, meeting *meet, int size, int rounds)
{
    struct record records[MOST_SERVERS] = { 0 };

    for (int round = 0; round < rounds; round++)
        for (int s = 0; s < server_count; s++) {
            struct record *r = &records[s];
            double seconds, cpu;

            if (r->error || r->spent > ENOUGH_SECONDS)
                continue;
            r->error = meet(&servers[s], size, &seconds, &cpu);
            r->spent += seconds;
            r->wall[r->n] = seconds * 1e3;
            r->cpu[r->n++] = cpu * 1e3;
            let_settle(&servers[s]);
        }
    print_records(name, size, records);
}

void rendezvous(void)
{
    static const struct {
        const char *name;
        meeting *meet;
        int size, rounds, quick_rounds;
    } rows[] = {
        { "rendezvous", crowd_meeting, 16, 41, 9 },
        { "rendezvous", crowd_meeting, 64, 41, 9 },
        { "rendezvous", crowd_meeting, 256, 21, 5 },
        { "rendezvous", crowd_meeting, 1024, 11, 3 },
        { "rendezvous", crowd_meeting, 10000, 5, 0 },
        { "rendezvous-threads", threads_meet, 16, 21, 9 },
        { "rendezvous-threads", threads_meet, 64, 21, 9 },
        { "rendezvous-threads", threads_meet, 256, 15, 5 },
        { "rendezvous-threads", threads_meet, 1024, 7, 3 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int rounds = quick ? rows[i].quick_rounds : rows[i].rounds;

        if (rounds)
            rendezvous_of(rows[i].name, rows[i].meet, rows[i].size, rounds);
    }
}
