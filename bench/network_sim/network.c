/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - runtime/messaging's requests over the simulated network.
 *
 *     requests_start() of a send: eager: leave_host -> reach_host -> arrive
 *                      rendezvous: RTS -> (when the receive is there) CTS -> the same
 *                      of a receive: takes what has arrived, or is posted
 *     request_wait()   sleeps until the request is done
 *
 * An eager send is done when it is handed over. */
#include "bench/network_sim/network.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/network_sim/scheduler.h"
#include "runtime/messaging/messages.h"

#define HEADER sizeof(struct frame)
/* A send is done when a socket has taken the last of it; it takes so much ahead of the wire. */
#define SOCKET_BUFFER ((double)(1 << 20))

struct message {
    struct message *next; /* that arrived at the same rank, or is unused */
    int from, to, is_rts;
    size_t bytes;
    struct request *send, *receive; /* with RTS: until it has left; from the CTS on */
};

/* The connection from a rank to another one while there is something in it: a CTS comes behind the
 * data that its rank has begun to send to the same rank. */
struct stream {
    struct stream *next;
    int to;
    double left, arrived; /* when all that was sent will have */
};

/* Of a rank. */
struct mailbox {
    struct stream *streams;
    struct message *kept, **kept_end; /* no receive has taken them */
    struct request *posted, **posted_end;
    const struct request *awaited;
};

struct host {
    double out_free, in_free; /* when its wire is */
    uint64_t out, in;         /* bytes */
};

struct model model;

static struct {
    struct mailbox *mailboxes;
    struct host *hosts;
    int ranks, host_count, each;
    uint64_t messages;
    struct message *unused, *chunks; /* the first message of a chunk leads to the next chunk */
    char failure[300];
} net;

/* ---- Failures --------------------------------------------------------------------- */

void simulation_fails(const char *format, ...)
{
    va_list args;

    scheduler_stop();
    if (net.failure[0])
        return;
    va_start(args, format);
    vsnprintf(net.failure, sizeof net.failure, format, args);
    va_end(args);
}

const char *simulation_failure(void)
{
    return net.failure;
}

void network_name_leftover(char *text, size_t size)
{
    *text = 0;
    for (int rank = 0; rank < net.ranks && !*text; rank++)
        if (net.mailboxes[rank].kept)
            snprintf(text, size, "rank %d sent %zu bytes to rank %d, which did not receive them",
                     net.mailboxes[rank].kept->from, net.mailboxes[rank].kept->bytes, rank);
}

void network_name_wait(int rank, char *text, size_t size)
{
    const struct request *r = net.mailboxes[rank].awaited;

    if (!r)
        snprintf(text, size, "rank %d waits for ranks of its host", rank);
    else
        snprintf(text, size, "rank %d waits %s rank %d (%zu bytes)", rank,
                 r->is_send ? "to send to" : "for a message of", r->peer, r->bytes);
}

/* ---- Messages --------------------------------------------------------------------- */

enum { CHUNK = 4096 };

/* Also NULL, if there is no memory. */
static struct message *new_message(void)
{
    struct message *chunk, *m = net.unused;

    if (m) {
        net.unused = m->next;
        return m;
    }
    chunk = malloc(CHUNK * sizeof *chunk);
    if (!chunk) {
        simulation_fails("no memory for more messages");
        return NULL;
    }
    chunk->next = net.chunks;
    net.chunks = chunk;
    for (int i = 2; i < CHUNK; i++) {
        chunk[i].next = net.unused;
        net.unused = &chunk[i];
    }
    return &chunk[1];
}

static void free_message(struct message *m)
{
    m->next = net.unused;
    net.unused = m;
}

int network_host(int rank)
{
    return rank / net.each;
}

static int on_one_host(const struct message *m)
{
    return network_host(m->from) == network_host(m->to);
}

/* ---- Requests --------------------------------------------------------------------- */

static void finish(int rank, struct request *request)
{
    struct mailbox *box = &net.mailboxes[rank];

    request->done = 1;
    if (box->awaited != request || rank == this_rank())
        return;
    box->awaited = NULL;
    wake(rank);
}

static void post(struct mailbox *box, struct request *receive)
{
    receive->next = NULL;
    *box->posted_end = receive;
    box->posted_end = &receive->next;
}

static struct request *take_posted(struct mailbox *box, int from)
{
    for (struct request **at = &box->posted; *at; at = &(*at)->next) {
        struct request *r = *at;

        if (r->peer != from)
            continue;
        *at = r->next;
        if (box->posted_end == &r->next)
            box->posted_end = at;
        return r;
    }
    return NULL;
}

static void keep(struct mailbox *box, struct message *m)
{
    m->next = NULL;
    *box->kept_end = m;
    box->kept_end = &m->next;
}

static struct message *take_kept(struct mailbox *box, int from)
{
    for (struct message **at = &box->kept; *at; at = &(*at)->next) {
        struct message *m = *at;

        if (m->from != from)
            continue;
        *at = m->next;
        if (box->kept_end == &m->next)
            box->kept_end = at;
        return m;
    }
    return NULL;
}

static int fits(const struct message *m, const struct request *receive)
{
    if (m->bytes == receive->bytes)
        return 1;
    simulation_fails("rank %d sent %zu bytes to rank %d, which receives %zu", m->from, m->bytes,
                     m->to, receive->bytes);
    return 0;
}

/* ---- Connections ------------------------------------------------------------------ */

/* Ends those that are empty on the way.  NULL: there is nothing in it. */
static struct stream *stream_of(int from, int to)
{
    struct stream **at = &net.mailboxes[from].streams;

    while (*at && (*at)->to != to) {
        struct stream *s = *at;

        if (s->left + latency_us() >= now() || s->arrived >= now()) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        free(s);
    }
    return *at;
}

static void note_data(const struct message *m, double left)
{
    struct stream *s = stream_of(m->from, m->to);

    if (!s) {
        s = calloc(1, sizeof *s);
        if (!s) {
            simulation_fails("no memory for a connection");
            return;
        }
        s->to = m->to;
        s->next = net.mailboxes[m->from].streams;
        net.mailboxes[m->from].streams = s;
    }
    s->left = left;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* ---- On the way ------------------------------------------------------------------- */

static void arrive(void *arg)
{
    struct message *m = arg;
    struct mailbox *box = &net.mailboxes[m->to];
    struct request *receive = m->receive ? m->receive : take_posted(box, m->from);

    works(m->to, now(), model.network.overhead_us);
    if (!receive) {
        keep(box, m);
        return;
    }
    if (!fits(m, receive))
        return;
    if (on_one_host(m))
        works(m->to, now(), (double)m->bytes * model.copy_us_per_byte);
    const int to = m->to;
    free_message(m);
    finish(to, receive);
}

static void has_left(void *arg)
{
    struct request *send = arg;

    finish((int)send->id, send);
}

static double wire_us(const struct message *m)
{
    return (double)(m->bytes + HEADER) * model.network.us_per_byte;
}

static void reach_host(void *arg)
{
    struct message *m = arg;
    struct host *host = &net.hosts[network_host(m->to)];
    struct stream *s = stream_of(m->from, m->to);

    host->in_free = later(host->in_free, now()) + wire_us(m);
    host->in += m->bytes + HEADER;
    if (s)
        s->arrived = host->in_free;
    at_time(host->in_free, arrive, m);
}

static void leave_host(void *arg)
{
    struct message *m = arg;
    struct host *host = &net.hosts[network_host(m->from)];
    const double start = later(host->out_free, now());

    net.messages++;
    host->out_free = start + wire_us(m);
    host->out += m->bytes + HEADER;
    note_data(m, host->out_free);
    if (m->send)
        at_time(later(now(), host->out_free - SOCKET_BUFFER * model.network.us_per_byte), has_left,
                m->send);
    at_time(start + latency_us(), reach_host, m);
}

/* ---- RTS and CTS ------------------------------------------------------------------- */

/* They wait for data of the same connection alone. */
static void leave_behind_data(struct message *m, int from, int to, void (*reach)(void *arg))
{
    const struct stream *s = stream_of(from, to);

    at_time(later(now(), s ? s->left : 0) + latency_us(), reach, m);
}

static void arrive_behind_data(struct message *m, int from, int to, void (*arrives)(void *arg))
{
    const struct stream *s = stream_of(from, to);

    at_time(later(now(), s ? s->arrived : 0), arrives, m);
}

/* When all that has come is read: then a CTS of ours is ahead of these bytes. */
static void leave_data(void *arg)
{
    struct message *m = arg;

    if (clock_of(m->from) > now())
        at_time(clock_of(m->from), leave_data, m);
    else
        leave_host(m);
}

static void arrive_cts(void *arg)
{
    struct message *m = arg;

    works(m->from, now(), model.network.overhead_us);
    at_time(clock_of(m->from), leave_data, m);
}

static void reach_cts(void *arg)
{
    struct message *m = arg;

    arrive_behind_data(m, m->to, m->from, arrive_cts);
}

static void leave_cts(void *arg)
{
    struct message *m = arg;

    leave_behind_data(m, m->to, m->from, reach_cts);
}

static void answer_rts(struct message *m, struct request *receive, double us)
{
    if (!fits(m, receive))
        return;
    m->receive = receive;
    at_time(us, leave_cts, m);
}

static void arrive_rts(void *arg)
{
    struct message *m = arg;
    struct mailbox *box = &net.mailboxes[m->to];
    struct request *receive = take_posted(box, m->from);

    works(m->to, now(), model.network.overhead_us);
    if (receive)
        answer_rts(m, receive, clock_of(m->to));
    else
        keep(box, m);
}

static void reach_rts(void *arg)
{
    struct message *m = arg;

    arrive_behind_data(m, m->from, m->to, arrive_rts);
}

static void leave_rts(void *arg)
{
    struct message *m = arg;

    leave_behind_data(m, m->from, m->to, reach_rts);
}

/* ---- The verbs of messages.h ------------------------------------------------------ */

void request_prepare(struct request *request, int is_send, uint64_t channel, int peer, int tag,
                     void *data, size_t bytes, const struct signature *signature)
{
    (void)channel, (void)tag, (void)data, (void)signature;
    request->is_send = (uint8_t)is_send;
    request->id = (uint64_t)this_rank();
    request->peer = peer;
    request->bytes = bytes;
    request->done = 0;
}

static void start_send(struct request *request)
{
    const int from = this_rank();
    struct message *m = new_message();

    if (!m)
        return;
    works(from, now(), model.network.overhead_us);
    *m = (struct message){ .from = from, .to = request->peer, .bytes = request->bytes };
    if (on_one_host(m)) {
        works(from, now(), (double)m->bytes * model.copy_us_per_byte);
        at_time(clock_of(from) + model.hop_us, arrive, m);
        request->done = 1;
    } else if (m->bytes <= EAGER_MOST) {
        at_time(clock_of(from), leave_host, m);
        request->done = 1;
    } else {
        m->is_rts = 1;
        m->send = request;
        at_time(clock_of(from), leave_rts, m);
    }
}

static void start_recv(struct request *request)
{
    const int rank = this_rank();
    struct mailbox *box = &net.mailboxes[rank];
    struct message *m;

    sleep_until_clock();
    m = take_kept(box, request->peer);
    if (!m) {
        post(box, request);
    } else if (m->is_rts) { /* the CTS leaves in one write with what is sent next */
        answer_rts(m, request, clock_of(rank) + model.network.overhead_us);
    } else if (fits(m, request)) { /* what was kept is copied to its place */
        works(rank, now(), (double)m->bytes * model.copy_us_per_byte);
        request->done = 1;
        free_message(m);
    }
}

void requests_start(struct mesh *mesh, struct request *requests, int count)
{
    (void)mesh;
    for (int i = 0; i < count; i++)
        if (requests[i].is_send)
            start_send(&requests[i]);
        else
            start_recv(&requests[i]);
}

ct_status request_wait(struct mesh *mesh, struct request *request, int64_t deadline,
                       const _Atomic int *interrupted)
{
    (void)mesh, (void)deadline, (void)interrupted;
    while (!request->done) {
        net.mailboxes[this_rank()].awaited = request;
        sleep_here();
    }
    return CT_OK;
}

/* Only after a failure, which ends the simulation. */
void request_cancel(struct mesh *mesh, struct request *request)
{
    (void)mesh, (void)request;
}

/* ---- Open and close --------------------------------------------------------------- */

int network_open(int hosts, int each)
{
    network_close();
    net.ranks = hosts * each;
    net.host_count = hosts;
    net.each = each;
    net.mailboxes = calloc((size_t)net.ranks, sizeof *net.mailboxes);
    net.hosts = calloc((size_t)hosts, sizeof *net.hosts);
    if (!net.mailboxes || !net.hosts)
        return -1;
    for (int i = 0; i < net.ranks; i++) {
        net.mailboxes[i].kept_end = &net.mailboxes[i].kept;
        net.mailboxes[i].posted_end = &net.mailboxes[i].posted;
    }
    return 0;
}

void network_close(void)
{
    while (net.chunks) {
        struct message *next = net.chunks->next;

        free(net.chunks);
        net.chunks = next;
    }
    for (int i = 0; i < net.ranks; i++)
        while (net.mailboxes[i].streams) {
            struct stream *next = net.mailboxes[i].streams->next;

            free(net.mailboxes[i].streams);
            net.mailboxes[i].streams = next;
        }
    free(net.mailboxes);
    free(net.hosts);
    memset(&net, 0, sizeof net);
}

struct traffic network_traffic(void)
{
    struct traffic t = { .messages = net.messages };

    for (int i = 0; i < net.host_count; i++) {
        t.most_out = net.hosts[i].out > t.most_out ? net.hosts[i].out : t.most_out;
        t.most_in = net.hosts[i].in > t.most_in ? net.hosts[i].in : t.most_in;
    }
    return t;
}
