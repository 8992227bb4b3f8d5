/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.c - W clients connect, VALIDATE, PING, ADD 1; the W-th sets a key; all WAIT and GET
 * it: until the last client has it.  Once with all clients in one thread, once with a thread each.
 *
 * In one thread each client is a descriptor, a state and how many bytes of its answer came, so that
 * the processors are the server's.
 *
 *   GREETING -> ADDING -> WAITING -> GETTING -> MET
 *
 * The client that ADD answers W sets the key that the others wait for.  A crowd that stays idle
 * stops after GREETING.  At most WINDOW clients are in GREETING at once: more than the listener's
 * backlog would measure the kernel's retransmission timer.
 *
 * With a thread each all calls block, as in workers.  The threads start at a barrier; the time runs
 * from the first that leaves it to the last that has the value.  No client closes before the
 * server's processor time was read. */
#include "bench/store_bench/crowd.h"
#include "bench/store_bench/modes.h"
#include "bench/store_bench/peer.h"
#include "bench/store_bench/stats.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- All in one thread ------------------------------------------------------------------- */

#define GET_ANSWER 9 /* the value is "1" */
#define WINDOW 1024

enum state { GREETING, ADDING, WAITING, GETTING, MET };

struct client {
    int fd;
    enum state state;
    unsigned got;
    char answer[16];
};

static const unsigned answer_bytes[] = {
    [GREETING] = 4, [ADDING] = 8, [WAITING] = 1, [GETTING] = GET_ANSWER
};

static void script_write(struct script *script)
{
    const int tag = new_tag();
    char key[64];

    *script = (struct script){ .number = (unsigned)tag };
    put_validate(&script->magic);
    put_ping(&script->hello);
    snprintf(key, sizeof key, "/%d/arrived", tag);
    put_key(&script->add, ADD, key);
    put_u64(&script->add, 1);
    snprintf(key, sizeof key, "/%d/all", tag);
    put_key(&script->set, SET, key);
    put_text(&script->set, "1");
    put_one(&script->wait, WAIT, key);
    put_key(&script->get, GET, key);
}

static void script_free(struct script *script)
{
    free(script->magic.data);
    free(script->hello.data);
    free(script->add.data);
    free(script->set.data);
    free(script->wait.data);
    free(script->get.data);
}

static int send_request(const struct client *client, const struct buffer *request)
{
    return send(client->fd, request->data, request->size, MSG_NOSIGNAL) == (ssize_t)request->size
               ? 0
               : -1;
}

static int client_start(struct crowd *crowd)
{
    const struct sockaddr_in *address = &crowd->server->address;
    struct client *client = &crowd->clients[crowd->started];
    struct epoll_event event = { .events = EPOLLOUT, .data.ptr = client };
    const int one = 1;

    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (client->fd < 0)
        die("socket (ulimit -n?)");
    crowd->started++;
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (take_source(client->fd, crowd->server, crowd->script.number) < 0)
        return -1;
    if (connect(client->fd, (const struct sockaddr *)address, sizeof *address) < 0
        && errno != EINPROGRESS)
        return -1;
    return epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, client->fd, &event);
}

static int client_connected(struct crowd *crowd, struct client *client)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };

    if (send_request(client, &crowd->script.magic) < 0
        || send_request(client, &crowd->script.hello) < 0)
        return -1;
    return epoll_ctl(crowd->epoll, EPOLL_CTL_MOD, client->fd, &event);
}

/* The answer to what it last said is whole. */
static int client_answered(struct crowd *crowd, struct client *client)
{
    int64_t arrived;

    client->got = 0;
    switch (client->state++) {
    case GREETING:
        crowd->greeted++;
        crowd->met += crowd->idle;
        return crowd->idle ? 0 : send_request(client, &crowd->script.add);
    case ADDING:
        memcpy(&arrived, client->answer, sizeof arrived);
        if (arrived == crowd->size && send_request(client, &crowd->script.set) < 0)
            return -1;
        return send_request(client, &crowd->script.wait);
    case WAITING:
        return send_request(client, &crowd->script.get);
    default:
        crowd->met++;
        return 0;
    }
}

static int client_readable(struct crowd *crowd, struct client *client)
{
    const unsigned wanted = answer_bytes[client->state];
    const ssize_t n = recv(client->fd, client->answer + client->got, wanted - client->got, 0);

    if (n <= 0)
        return n < 0 && errno == EAGAIN ? 0 : -1;
    client->got += (unsigned)n;
    return client->got == wanted ? client_answered(crowd, client) : 0;
}

int crowd_meets(struct crowd *crowd, double deadline)
{
    struct epoll_event events[256];

    while (crowd->met < crowd->size) {
        int n;

        while (crowd->started < crowd->size && crowd->started - crowd->greeted < WINDOW)
            if (client_start(crowd) < 0)
                return -1;
        n = epoll_wait(crowd->epoll, events, 256, 100);
        for (int i = 0; i < n; i++) {
            struct client *client = events[i].data.ptr;

            if ((events[i].events & EPOLLOUT ? client_connected : client_readable)(crowd, client)
                < 0)
                return -1;
        }
        if (now() > deadline) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return 0;
}

void crowd_init(struct crowd *crowd, const struct server *server, int size)
{
    *crowd = (struct crowd){ .server = server, .size = size };
    crowd->clients = get_memory((size_t)size * sizeof *crowd->clients);
    crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
    script_write(&crowd->script);
}

void crowd_leave(struct crowd *crowd)
{
    for (int i = 0; i < crowd->started; i++)
        close(crowd->clients[i].fd);
    close(crowd->epoll);
    free(crowd->clients);
    script_free(&crowd->script);
}

/* ---- A thread each ----------------------------------------------------------------------- */

#define STACK_BYTES (64 << 10)

struct thread_meeting {
    const struct server *server;
    struct script script;
    pthread_barrier_t start;
    int size;
};

struct worker {
    struct thread_meeting *meeting;
    struct peer peer;
    pthread_t thread;
    double began, ended;
    int error;
};

static int meet_blocking(struct peer *peer, const struct thread_meeting *m)
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
    w->error = meet_blocking(&w->peer, w->meeting) < 0 ? errno : 0;
    w->ended = now();
    return NULL;
}

static void begin_threads(struct worker *workers, struct thread_meeting *m)
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

/* Returns 0 or an errno. */
static int threads_meet(const struct server *server, int size, double *seconds, double *cpu)
{
    struct worker *workers = get_memory((size_t)size * sizeof *workers);
    struct thread_meeting m = { .server = server, .size = size };
    double first = 0, last = 0;
    int error = 0;

    script_write(&m.script);
    pthread_barrier_init(&m.start, NULL, (unsigned)size + 1);
    begin_threads(workers, &m);
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

/* ---- Both -------------------------------------------------------------------------------- */

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
