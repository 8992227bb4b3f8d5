/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - what silent clients and stored keys cost a server. */
#include "bench/store_bench/crowd.h"
#include "bench/store_bench/modes.h"
#include "bench/store_bench/peer.h"
#include "bench/store_bench/stats.h"

#include <stdio.h>
#include <stdlib.h>

#define IDLE_CLIENTS (quick ? 2000 : 10000)
#define STORED_KEYS 131072

/* What one more client sees while the others are silent. */
static void among_the_idle(const struct server *server)
{
    const size_t n = quick ? 500 : 2000;
    double *us = get_memory(n * sizeof *us);
    struct operation ops[OPERATIONS];
    struct peer peer;

    prepare(ops, new_tag());
    if (peer_open(&peer, server) == 0) {
        const double cpu = cpu_seconds(server);

        for (size_t i = 0; i < n; i++) {
            const double start = now();

            operate(&peer, &ops[ADD_ONE]);
            us[i] = (now() - start) * 1e6;
        }
        figure(server, "us", number((cpu_seconds(server) - cpu) / (double)n * 1e6),
               "latency/add/%d-idle-clients/server-cpu", IDLE_CLIENTS);
        figure(server, "us", number(quantile(us, n, 0.5)), "latency/add/%d-idle-clients/p50",
               IDLE_CLIENTS);
    }
    peer_close(&peer);
    forget(ops);
    free(us);
}

static double memory_now(const struct server *server, const char *when)
{
    let_settle(server);
    figure(server, "KiB", number(status_kib(server, "VmRSS")), "memory/%s/rss", when);
    figure(server, "KiB", number(status_kib(server, "RssAnon")), "memory/%s/anon", when);
    return status_kib(server, "RssAnon");
}

/* The clients stay while the keys come: what they gave back would be used again. */
static void memory_of(const struct server *server)
{
    const int tag = new_tag();
    const double start = memory_now(server, "start");
    double with_clients, with_keys;
    char clients[32], keys[32];
    struct crowd crowd;

    snprintf(clients, sizeof clients, "%d-clients", IDLE_CLIENTS);
    snprintf(keys, sizeof keys, "and-%d-keys", STORED_KEYS);
    crowd_init(&crowd, server, IDLE_CLIENTS);
    crowd.idle = 1;
    if (crowd_meets(&crowd, now() + 3 * LIMIT_SECONDS) < 0)
        fprintf(stderr, "store_bench: %s: %d of %d clients were greeted\n", server->name,
                crowd.greeted, crowd.size);
    with_clients = memory_now(server, clients);
    place_all(FIRST, FIRST);
    among_the_idle(server);
    place_all(ANYWHERE, ANYWHERE);
    set_all(server, tag, STORED_KEYS);
    with_keys = memory_now(server, keys);
    crowd_leave(&crowd);
    let_settle(server);
    delete_all(server, tag, STORED_KEYS);
    memory_now(server, "all-gone");
    figure(server, "bytes", number((with_clients - start) * 1024 / IDLE_CLIENTS),
           "memory/per-client");
    figure(server, "bytes", number((with_keys - with_clients) * 1024 / STORED_KEYS),
           "memory/per-key");
}

void memory(void)
{
    for (int s = 0; s < server_count; s++)
        if (servers[s].pid)
            memory_of(&servers[s]);
}
