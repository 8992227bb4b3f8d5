/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous_sim - how ct_init_process_group() loads the store of a job of many hosts.
 *
 *     rendezvous_sim [RANKS_A_HOST [HOSTS...]]
 *
 * Each host is a thread.  It has a connection to the store for each of its ranks, and sends on them
 * what those ranks send at init: the election of the host's leader, the peer infos, and what the
 * leaders read.  Store, protocol, connections and requests are the real ones; what is left out is
 * what happens within a host.  Printed are the time from the first connection until all leaders
 * have all they need, and the store's requests and bytes. */
#include <netinet/in.h>
#include <linux/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "runtime/bootstrap/claims.h"
#include "runtime/bootstrap/host_leader.h"
#include "runtime/bootstrap/peer_info.h"
#include "runtime/bootstrap/store_all_gather.h"
#include "runtime/net/socket.h"
#include "runtime/store/server/server_thread.h"
#include "runtime/store/tcp_store.h"
#include "runtime/util/clock.h"

enum { DEADLINE_MS = 120000, STACK = 256 << 10, MOST_HOSTS = 100000 };

static struct job {
    int hosts, ranks_each, port;
    int64_t deadline;
    _Atomic uint64_t requests, sent, received; /* by all clients */
    _Atomic int failed;
} job;

struct host {
    pthread_t thread;
    int number;
    ct_store **stores; /* of its ranks */
    struct host_leader leader;
};

static int fails(ct_status status)
{
    if (status == CT_OK)
        return 0;
    if (!atomic_exchange(&job.failed, 1))
        fprintf(stderr, "rendezvous_sim: %s\n", ct_last_error());
    return 1;
}

static void count(int requests)
{
    atomic_fetch_add(&job.requests, (uint64_t)requests);
}

static ct_status take(ct_store *store, const char *what, int rank, int size)
{
    struct gathered all;
    const ct_status status = store_all_gather_take(store, what, rank, size, job.deadline, &all);

    count(2);
    gathered_free(&all);
    return status;
}

static ct_status publish(struct host *host, int local)
{
    const int rank = host->number * job.ranks_each + local;
    ct_store *store = host->stores[local];
    struct host_leader elected;
    struct mesh mesh = { .rank = rank, .size = job.hosts * job.ranks_each };
    struct leader_info own = { .peer.version = 1 };
    char machine[32];
    ct_status status;

    snprintf(machine, sizeof machine, "machine %d", host->number);
    status = host_leader_elect(&elected, store, rank, mesh.size, machine);
    if (status == CT_OK)
        status = claim_size(store, rank, mesh.size, &elected);
    if (status == CT_OK)
        status = claim_rank(store, &mesh, &elected, &own,
                            elected.is_self ? sizeof own : sizeof own.peer, job.deadline);
    count(3 + elected.is_self);
    host_leader_close(&elected, CT_OK);
    return status;
}

static void note_bytes(ct_store *store)
{
    struct tcp_info info = { 0 };
    socklen_t size = sizeof info;

    if (getsockopt(store_client_fd(store), IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
        return;
    atomic_fetch_add(&job.sent, info.tcpi_bytes_acked);
    atomic_fetch_add(&job.received, info.tcpi_bytes_received);
}

static void *run_host(void *arg)
{
    struct host *host = arg;
    const size_t ports = 64 + (size_t)job.ranks_each * sizeof(int32_t);
    char *own_ports = calloc(1, ports);
    int failed = 0;

    host->stores = calloc((size_t)job.ranks_each, sizeof *host->stores);
    for (int i = 0; i < job.ranks_each && !failed; i++)
        failed = fails(store_client_connect("127.0.0.1", job.port, job.deadline, DEADLINE_MS,
                                            &host->stores[i]));
    for (int i = 0; i < job.ranks_each && !failed; i++)
        failed = fails(publish(host, i));
    failed = failed
             || fails(take(host->stores[0], "card", host->number * job.ranks_each,
                           job.hosts * job.ranks_each))
             || fails(store_all_gather_give(host->stores[0], "ports", host->number, job.hosts,
                                            job.deadline, own_ports, ports))
             || fails(take(host->stores[0], "ports", host->number, job.hosts));
    count(2);
    free(own_ports);
    return NULL;
}

static void end_host(struct host *host)
{
    for (int i = 0; i < job.ranks_each && host->stores[i]; i++) {
        note_bytes(host->stores[i]);
        ct_store_close(host->stores[i]);
    }
    free(host->stores);
}

static int run(int hosts, int ranks_each)
{
    struct host *all = calloc((size_t)hosts, sizeof *all);
    struct store_thread *server;
    pthread_attr_t small;
    int listener = -1;
    double start, done;

    job = (struct job){ .hosts = hosts, .ranks_each = ranks_each };
    job.deadline = clock_ms() + DEADLINE_MS;
    if (fails(socket_listen("127.0.0.1", 0, &listener)))
        return 1;
    job.port = socket_port(listener);
    if (fails(store_thread_start(listener, &server)))
        return 1;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    start = (double)clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < hosts; i++) {
        all[i].number = i;
        if (pthread_create(&all[i].thread, &small, run_host, &all[i]) != 0) {
            fprintf(stderr, "rendezvous_sim: no thread for host %d\n", i);
            return 1;
        }
    }
    for (int i = 0; i < hosts; i++)
        pthread_join(all[i].thread, NULL);
    done = ((double)clock_ns(CLOCK_MONOTONIC) - start) / 1e9;
    for (int i = 0; i < hosts; i++)
        end_host(&all[i]);
    store_thread_stop(server);
    if (!job.failed)
        printf("| %d | %d | %.3f | %llu | %.1f | %.1f | %.0f |\n", hosts, hosts * ranks_each, done,
               (unsigned long long)job.requests, (double)job.sent / 1e6, (double)job.received / 1e6,
               (double)job.received / hosts / 1e3);
    fflush(stdout);
    free(all);
    return job.failed;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = { "10", "30", "100", "300", "1000" };
    const char *const *sizes = argc > 2 ? (const char *const *)argv + 2 : usual;
    const int count_of_sizes = argc > 2 ? argc - 2 : (int)(sizeof usual / sizeof *usual);
    const int ranks_each = argc > 1 ? atoi(argv[1]) : 8;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    unsetenv("CT_STORE_SECRET");
    unsetenv("CT_STORE_SECRET_FILE");
    printf("| hosts | ranks | s | requests | MB to the store | MB from it | kB a host reads |\n"
           "|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < count_of_sizes; i++) {
        const int hosts = atoi(sizes[i]);

        if (ranks_each < 1 || hosts < 1 || hosts > MOST_HOSTS || run(hosts, ranks_each))
            return 1;
    }
    return 0;
}
