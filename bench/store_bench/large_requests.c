/* SPDX-License-Identifier: Apache-2.0 */
/* large_requests.c - requests that take a server long: one message with n keys, one SET and one GET
 * of a large value.
 *
 * Each case is timed once a round, while a second client measures how long it is kept waiting. */
#include "bench/store_bench/modes.h"
#include "bench/store_bench/peer.h"
#include "bench/store_bench/stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_ROUNDS 8

/* What one case gave on one server. */
struct outcome {
    double ms[MOST_ROUNDS], cpu[MOST_ROUNDS], worst[MOST_ROUNDS], p99[MOST_ROUNDS];
    size_t n;
    int error; /* an errno: it was given up; not tried again */
};

/* A case: peers[0] asks; peers[1] is a second client for what needs one. */
typedef int action(struct peer peers[2], int tag, int n);

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

static void peers_close(struct peer peers[2])
{
    peer_close(&peers[0]);
    peer_close(&peers[1]);
}

/* Opens the peers that are not open. */
static void timed(const struct server *server, struct outcome *outcome, action *act,
                  struct peer peers[2], int tag, int n)
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

/* Prints the outcomes of each server, which lie stride apart. */
static void report(const char *mode, const char *name, const char *size, struct outcome *outcomes,
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

/* ---- Many keys --------------------------------------------------------------------------- */

static int ask_many(struct peer *peer, enum command command, int tag, int n, size_t answer)
{
    struct buffer b = { 0 };
    char bytes[8];

    put_many(&b, command, tag, 0, n);
    if (command == MULTI_SET)
        put_ping(&b); /* to see that it is done */
    return ask_once(peer, &b, bytes, answer);
}

static int many_wait_missing(struct peer peers[2], int tag, int n)
{
    struct buffer b = { 0 };
    char nonce[4];

    put_many(&b, WAIT, tag, 0, n);
    put_ping(&b); /* answered when the WAIT has been understood */
    return ask_once(&peers[0], &b, nonce, sizeof nonce);
}

/* The WAIT of many_wait_missing is still open. */
static int many_release(struct peer peers[2], int tag, int n)
{
    char zero;

    if (ask_many(&peers[1], MULTI_SET, tag, n, 4) < 0)
        return -1;
    return receive(&peers[0], &zero, 1);
}

static int many_check(struct peer peers[2], int tag, int n)
{
    return ask_many(&peers[0], CHECK, tag, n, 1);
}

static int many_wait_present(struct peer peers[2], int tag, int n)
{
    return ask_many(&peers[0], WAIT, tag, n, 1);
}

static int many_set(struct peer peers[2], int tag, int n)
{
    return ask_many(&peers[0], MULTI_SET, tag, n, 4);
}

static int many_get(struct peer peers[2], int tag, int n)
{
    if (ask_many(&peers[0], MULTI_GET, tag, n, 0) < 0)
        return -1;
    return receive_blobs(&peers[0], n);
}

static int many_list(struct peer peers[2], int tag, int n)
{
    const unsigned char command = LIST_KEYS;
    int64_t count;

    (void)tag;
    (void)n;
    if (send_all(&peers[0], &command, 1) < 0 || receive(&peers[0], &count, sizeof count) < 0)
        return -1;
    return receive_blobs(&peers[0], count);
}

static const struct {
    const char *name;
    action *act;
} cases[] = {
    /* in this order: the first two make the keys */
    { "wait-missing", many_wait_missing },
    { "release-by-multi-set", many_release },
    { "check", many_check },
    { "wait-present", many_wait_present },
    { "multi-get", many_get },
    { "multi-set", many_set },
    { "list-keys", many_list },
};

#define CASES (sizeof cases / sizeof *cases)

/* All cases once on one server. */
static void many_round(const struct server *server, struct outcome outcomes[CASES], int n)
{
    struct peer peers[2] = { { .fd = -1 }, { .fd = -1 } };
    const int tag = new_tag();

    for (size_t c = 0; c < CASES; c++) {
        timed(server, &outcomes[c], cases[c].act, peers, tag, n);
        if (c < 2 && outcomes[c].error)
            set_all(server, tag, n);
    }
    peers_close(peers);
    delete_all(server, tag, n);
}

static void many_keys_of(int n, int rounds)
{
    struct outcome *outcomes = get_memory(MOST_SERVERS * CASES * sizeof *outcomes);
    double spent[MOST_SERVERS] = { 0 };
    char size[16];

    for (int round = 0; round < rounds; round++)
        for (int s = 0; s < server_count; s++) {
            const double start = now();

            if (spent[s] > ENOUGH_SECONDS)
                continue;
            many_round(&servers[s], &outcomes[(size_t)s * CASES], n);
            spent[s] += now() - start;
        }
    snprintf(size, sizeof size, "%d", n);
    for (size_t c = 0; c < CASES; c++)
        report("many-keys", cases[c].name, size, outcomes + c, CASES);
    free(outcomes);
}

void many_keys(void)
{
    many_keys_of(1024, quick ? 1 : 5);
    many_keys_of(16384, quick ? 1 : 5);
    if (!quick)
        many_keys_of(131072, 3);
}

/* ---- Large values ------------------------------------------------------------------------ */

static int big_set(struct peer peers[2], int tag, int mib)
{
    const size_t bytes = (size_t)mib << 20;
    char *value = get_memory(bytes);
    struct buffer b = { 0 };
    char key[64];
    int failed;

    snprintf(key, sizeof key, "/%d/big", tag);
    put_key(&b, SET, key);
    put_u64(&b, bytes);
    failed = send_all(&peers[0], b.data, b.size) < 0 || send_all(&peers[0], value, bytes) < 0
             || ping(&peers[0]) < 0;
    free(b.data);
    free(value);
    return failed ? -1 : 0;
}

static int big_get(struct peer peers[2], int tag, int mib)
{
    struct buffer wait = { 0 }, get = { 0 };
    char key[64], zero;

    (void)mib;
    snprintf(key, sizeof key, "/%d/big", tag);
    put_one(&wait, WAIT, key);
    if (ask_once(&peers[0], &wait, &zero, 1) < 0)
        return -1;
    put_key(&get, GET, key);
    if (ask_once(&peers[0], &get, NULL, 0) < 0)
        return -1;
    return receive_blob(&peers[0]);
}

static void delete_big(const struct server *server, int tag)
{
    struct buffer b = { 0 };
    struct peer peer;
    char key[64], answer[8];

    if (peer_open(&peer, server) < 0)
        return;
    snprintf(key, sizeof key, "/%d/big", tag);
    put_key(&b, DELETE_KEY, key);
    ask_once(&peer, &b, answer, sizeof answer);
    peer_close(&peer);
}

void big_values(void)
{
    static const int sizes[] = { 1, 8, 64 };
    const size_t rounds = quick ? 1 : 5;

    for (size_t i = 0; i < 3; i++) {
        struct outcome *outcomes = get_memory(MOST_SERVERS * 2 * sizeof *outcomes);
        char size[16];

        for (size_t round = 0; round < rounds; round++)
            for (int s = 0; s < server_count; s++) {
                struct outcome *set = &outcomes[2 * s], *get = set + 1;
                struct peer peers[2] = { { .fd = -1 }, { .fd = -1 } };
                const int tag = new_tag();

                timed(&servers[s], set, big_set, peers, tag, sizes[i]);
                if (set->error)
                    get->error = set->error;
                timed(&servers[s], get, big_get, peers, tag, sizes[i]);
                peers_close(peers);
                delete_big(&servers[s], tag);
            }
        snprintf(size, sizeof size, "%d-MiB", sizes[i]);
        report("big-value", "set", size, outcomes, 2);
        report("big-value", "get", size, outcomes + 1, 2);
        free(outcomes);
    }
}
