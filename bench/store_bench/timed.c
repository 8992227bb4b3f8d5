/* SPDX-License-Identifier: Apache-2.0 */
/* timed.c - see timed.h. */
#include "bench/store_bench/stats.h"
#include "bench/store_bench/timed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- How long a second client is kept waiting ------------------------------ */

#define MOST_PINGS 200000

struct watch {
    volatile int ready, stop;
    size_t n;
    double us[MOST_PINGS];
};

static struct watch *watching;
static pid_t watcher;

/* A PING, a short pause, the next: it notices a stall and does not make one. */
static _Noreturn void watch(const struct server *server)
{
    struct peer peer;
    int last = 0;

    if (peer_open(&peer, server) < 0)
        _exit(1);
    peer.deadline = now() + 3 * LIMIT_SECONDS;
    while (!last && watching->n < MOST_PINGS) {
        const double start = now();

        last = watching->stop; /* a PING that was due before the end is counted whole */
        if (ping(&peer) < 0)
            _exit(1);
        watching->us[watching->n++] = (now() - start) * 1e6;
        watching->ready = 1;
        usleep(100);
    }
    _exit(0);
}

static void watch_start(const struct server *server)
{
    if (!watching)
        watching = get_shared(sizeof *watching);
    watching->n = 0;
    watching->ready = watching->stop = 0;
    fflush(stdout);
    watcher = fork();
    if (watcher < 0)
        die("fork");
    if (watcher == 0)
        watch(server);
    while (!watching->ready && waitpid(watcher, NULL, WNOHANG) == 0)
        usleep(1000);
    watching->n = 0;
}

struct stall {
    double max, p99; /* ms */
};

static struct stall watch_stop(void)
{
    watching->stop = 1;
    waitpid(watcher, NULL, 0);
    return (struct stall){ quantile(watching->us, watching->n, 1) / 1e3,
                           quantile(watching->us, watching->n, 0.99) / 1e3 };
}

/* ---- A case ----------------------------------------------------------------- */

static int peers_open(struct peer peers[2], const struct server *server)
{
    for (int i = 0; i < 2; i++)
        if (peers[i].fd < 0 && peer_open(&peers[i], server) < 0)
            return -1;
    return 0;
}

void peers_close(struct peer peers[2])
{
    peer_close(&peers[0]);
    peer_close(&peers[1]);
}

void timed(const struct server *server, struct outcome *outcome, action *act, struct peer peers[2],
           int tag, int n)
{
    double start, cpu;
    struct stall stall;

    if (outcome->error)
        return;
    if (peers_open(peers, server) < 0) {
        outcome->error = errno;
        return;
    }
    watch_start(server);
    cpu = cpu_seconds(server);
    start = now();
    peers[0].deadline = peers[1].deadline = start + LIMIT_SECONDS;
    if (act(peers, tag, n) < 0) {
        outcome->error = errno;
        peers_close(peers); /* their answers are out of step */
    }
    outcome->ms[outcome->n] = (now() - start) * 1e3;
    outcome->cpu[outcome->n] = (cpu_seconds(server) - cpu) * 1e3;
    stall = watch_stop();
    outcome->worst[outcome->n] = stall.max;
    outcome->p99[outcome->n] = stall.p99;
    outcome->n++;
}

void report(const char *mode, const char *name, const char *size, struct outcome *outcomes,
            size_t stride)
{
    static const char *const suffixes[] = { "", "/server-cpu", "/other-max", "/other-p99" };

    for (int row = 0; row < 4; row++)
        for (int s = 0; s < server_count; s++) {
            struct outcome *o = &outcomes[(size_t)s * stride];
            double *values[] = { o->ms, o->cpu, o->worst, o->p99 };

            figure(&servers[s], "ms",
                   verdict(row > 1 && o->error == ETIMEDOUT ? 0 : o->error,
                           quantile(values[row], o->n, 0.5)),
                   "%s/%s/%s%s", mode, name, size, suffixes[row]);
        }
}

/* ---- Its keys --------------------------------------------------------------- */

void set_all(const struct server *server, int tag, int n)
{
    struct peer peer;
    char nonce[4];

    if (peer_open(&peer, server) < 0)
        return;
    peer.deadline = now() + 3 * LIMIT_SECONDS;
    for (int i = 0; i < n; i += 512) {
        struct buffer b = { 0 };

        put_many(&b, MULTI_SET, tag, i, n - i < 512 ? n - i : 512);
        put_ping(&b);
        if (ask_once(&peer, &b, nonce, sizeof nonce) < 0)
            break;
    }
    peer_close(&peer);
}

void delete_all(const struct server *server, int tag, int n)
{
    struct peer peer;
    char key[64];
    const size_t prefix = (size_t)snprintf(key, sizeof key, "/%d/key/", tag);
    int64_t answers[512];

    if (peer_open(&peer, server) < 0)
        return;
    peer.deadline = now() + 3 * LIMIT_SECONDS;
    for (int i = 0; i < n;) {
        struct buffer b = { 0 };
        const int first = i;

        for (; i < n && i < first + 512; i++) {
            put_u8(&b, DELETE_KEY);
            put_blob(&b, key, number_key(key, prefix, i));
        }
        if (ask_once(&peer, &b, answers, (size_t)(i - first) * 8) < 0)
            break;
    }
    peer_close(&peer);
}
