/* SPDX-License-Identifier: Apache-2.0 */
/* latency.c - one client, one operation after the other; BATCH of them on one
 * server, then on the next. */
#include "bench/store_bench/modes.h"
#include "bench/store_bench/peer.h"
#include "bench/store_bench/stats.h"

#include <errno.h>
#include <stdlib.h>

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
