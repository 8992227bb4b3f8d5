/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - a rendezvous of one thread each, all blocking, as workers are.  They
 * start at a barrier; the time runs from the first that leaves it to the last
 * that has the value.  Nobody closes before the server's time was read. */
#include "bench/store_bench/crowd.h"
#include "bench/store_bench/peer.h"
#include "bench/store_bench/stats.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define STACK_BYTES (64 << 10)

struct meeting {
    const struct server *server;
    struct script script;
    pthread_barrier_t start;
    int size;
};

struct worker {
    struct meeting *meeting;
    struct peer peer;
    pthread_t thread;
    double began, ended;
    int error;
};

static int meet(struct peer *peer, const struct meeting *m)
{
    const struct script *script = &m->script;
    char answer[GET_ANSWER];
    int64_t arrived;

    if (peer_dial(peer, m->server, script->number) < 0 || ask(peer, &script->magic, NULL, 0) < 0
        || ask(peer, &script->hello, answer, 4) < 0
        || ask(peer, &script->add, &arrived, sizeof arrived) < 0)
        return -1;
    if (arrived == m->size && ask(peer, &script->set, NULL, 0) < 0)
        return -1;
    return ask(peer, &script->wait, answer, 1) < 0 ? -1
                                                   : ask(peer, &script->get, answer, GET_ANSWER);
}

static void *work(void *argument)
{
    struct worker *w = argument;

    pthread_barrier_wait(&w->meeting->start);
    w->began = now();
    w->error = meet(&w->peer, w->meeting) < 0 ? errno : 0;
    w->ended = now();
    return NULL;
}

static void begin(struct worker *workers, struct meeting *m)
{
    pthread_attr_t small;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    for (int i = 0; i < m->size; i++) {
        workers[i].meeting = m;
        workers[i].peer.fd = -1;
        if ((errno = pthread_create(&workers[i].thread, &small, work, &workers[i])))
            die("thread");
    }
    pthread_attr_destroy(&small);
}

int threads_meet(const struct server *server, int size, double *seconds, double *cpu)
{
    struct worker *workers = get_memory((size_t)size * sizeof *workers);
    struct meeting m = { .server = server, .size = size };
    double first = 0, last = 0;
    int error = 0;

    script_write(&m.script);
    pthread_barrier_init(&m.start, NULL, (unsigned)size + 1);
    begin(workers, &m);
    *cpu = cpu_seconds(server);
    pthread_barrier_wait(&m.start);
    for (int i = 0; i < size; i++) {
        const struct worker *w = &workers[i];

        pthread_join(w->thread, NULL);
        first = i == 0 || w->began < first ? w->began : first;
        last = w->ended > last ? w->ended : last;
        error = error ? error : w->error;
    }
    *seconds = last - first;
    *cpu = cpu_seconds(server) - *cpu;
    for (int i = 0; i < size; i++)
        peer_close(&workers[i].peer);
    pthread_barrier_destroy(&m.start);
    script_free(&m.script);
    free(workers);
    return error;
}
