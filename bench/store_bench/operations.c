/* SPDX-License-Identifier: Apache-2.0 */
/* operations.c - single operations.
 *
 * latency: one client, one operation after the other; BATCH of them on one server, then on the
 * next. throughput: client processes that do one operation as often as they can in a slice of time.
 */
#include "bench/store_bench/modes.h"
#include "bench/store_bench/peer.h"
#include "bench/store_bench/stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Latency ----------------------------------------------------------------------------- */

#define BATCH 200

static void latency_of(const char *placement)
{
    const size_t rounds = quick ? 8 : 30, samples = rounds * BATCH;
    double *taken = get_memory((size_t)server_count * OPERATIONS * samples * sizeof *taken);
    struct operation ops[OPERATIONS];
    struct peer peers[MOST_SERVERS];

    prepare(ops, new_tag());
    for (int s = 0; s < server_count; s++) {
        if (peer_open(&peers[s], &servers[s]) == 0)
            operate(&peers[s], &ops[SET_PING]); /* the others need the key */
    }
    for (size_t round = 0; round < rounds; round++)
        for (int op = 0; op < OPERATIONS; op++)
            for (int s = 0; s < server_count; s++) {
                double *to = taken + ((size_t)(s * OPERATIONS + op) * rounds + round) * BATCH;

                peers[s].deadline = now() + LIMIT_SECONDS;
                for (int i = 0; i < BATCH && peers[s].fd >= 0; i++) {
                    const double start = now();

                    if (operate(&peers[s], &ops[op]) < 0)
                        peer_close(&peers[s]);
                    to[i] = (now() - start) * 1e6;
                }
            }
    for (int op = 0; op < OPERATIONS; op++) {
        static const struct {
            const char *name;
            double q;
        } rows[] = { { "min", 0 }, { "p50", 0.5 }, { "p99", 0.99 } };

        for (size_t row = 0; row < 3; row++)
            for (int s = 0; s < server_count; s++)
                figure(&servers[s], "us",
                       verdict(peers[s].fd < 0 ? EPIPE : 0,
                               quantile(taken + (size_t)(s * OPERATIONS + op) * samples, samples,
                                        rows[row].q)),
                       "latency/%s/%s/%s", ops[op].name, placement, rows[row].name);
    }
    for (int s = 0; s < server_count; s++)
        peer_close(&peers[s]);
    forget(ops);
    free(taken);
}

void latency(void)
{
    place_all(FIRST, FIRST);
    latency_of("same-cpu");
    place_all(LAST, FIRST);
    latency_of("other-cpu");
    place_all(ANYWHERE, ANYWHERE);
}

/* ---- Throughput -------------------------------------------------------------------------- */

#define MOST_CLIENTS 16
#define MOST_ROUNDS 8

struct slice {
    double stop;
    long done[MOST_CLIENTS][8]; /* one cache line each */
};

static _Noreturn void hammer(const struct server *server, const struct operation *op,
                             struct slice *slice, int index, int ready, int go)
{
    struct peer peer;
    long done = 0;
    char byte = 0;

    if (peer_open(&peer, server) < 0)
        _exit(1);
    peer.deadline = now() + LIMIT_SECONDS;
    /* Ready; then all begin when the parent closes its end. */
    if (write(ready, &byte, 1) < 0 || close(ready) < 0 || read(go, &byte, 1) < 0)
        _exit(1);
    while (now() < slice->stop && operate(&peer, op) == 0)
        done++;
    slice->done[index][0] = done;
    _exit(0);
}

/* Operations a second; *cpu_us: of the server, for one operation. */
static double run_slice(const struct server *server, const struct operation *op, int clients,
                        double seconds, double *cpu_us)
{
    struct slice *slice = get_shared(sizeof *slice);
    int ready[2], go[2];
    double total = 0, cpu;
    char byte;

    if (pipe(ready) < 0 || pipe(go) < 0)
        die("pipe");
    fflush(stdout);
    for (int i = 0; i < clients; i++) {
        const pid_t pid = fork();

        if (pid < 0)
            die("fork");
        if (pid == 0) {
            close(ready[0]);
            close(go[1]);
            hammer(server, op, slice, i, ready[1], go[0]);
        }
    }
    close(ready[1]);
    close(go[0]);
    for (int i = 0; i < clients && read(ready[0], &byte, 1) == 1; i++)
        ;
    cpu = cpu_seconds(server);
    slice->stop = now() + seconds;
    close(go[1]);
    while (wait(NULL) > 0)
        ;
    cpu = cpu_seconds(server) - cpu;
    close(ready[0]);
    for (int i = 0; i < clients; i++)
        total += (double)slice->done[i][0];
    munmap(slice, sizeof *slice);
    *cpu_us = total > 0 ? cpu * 1e6 / total : 0;
    return total / seconds;
}

static void throughput_of(const struct operation *op, int clients)
{
    const size_t rounds = quick ? 3 : 5;
    const double seconds = quick ? 0.1 : 0.3;
    double rate[MOST_SERVERS][MOST_ROUNDS], cpu[MOST_SERVERS][MOST_ROUNDS];

    place_all(clients == 1 ? LAST : ANYWHERE, clients == 1 ? FIRST : ANYWHERE);
    for (size_t round = 0; round < rounds; round++)
        for (int s = 0; s < server_count; s++)
            rate[s][round] = run_slice(&servers[s], op, clients, seconds, &cpu[s][round]);
    for (int s = 0; s < server_count; s++) {
        figure(&servers[s], "ops/s", number(quantile(rate[s], rounds, 0.5)),
               "throughput/%s/%d-clients", op->name, clients);
        figure(&servers[s], "us", number(quantile(cpu[s], rounds, 0.5)),
               "throughput/%s/%d-clients/server-cpu", op->name, clients);
    }
}

void throughput(void)
{
    static const int clients[] = { 1, 4, 16 }, which[] = { ADD_ONE, WAIT_GET, SET_PING };
    struct operation ops[OPERATIONS];

    prepare(ops, new_tag());
    for (int s = 0; s < server_count; s++) {
        struct peer peer;

        if (peer_open(&peer, &servers[s]) == 0)
            operate(&peer, &ops[SET_PING]); /* get needs the key */
        peer_close(&peer);
    }
    for (size_t w = 0; w < sizeof which / sizeof *which; w++)
        for (size_t c = 0; c < sizeof clients / sizeof *clients; c++)
            throughput_of(&ops[which[w]], clients[c]);
    place_all(ANYWHERE, ANYWHERE);
    forget(ops);
}
