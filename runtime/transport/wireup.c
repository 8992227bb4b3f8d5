/* SPDX-License-Identifier: Apache-2.0 */
/* wireup.c - makes the connections between ranks, for the rank that connects and the rank that
 * accepts.
 *
 * A connection is a `struct pending` with a step until the proofs were exchanged.  A turn of the
 * loop advances the connections that epoll reports, then the connections with an expired time
 * limit, and then accepts new connections.
 *
 * If the mesh encrypts, each rank does the TLS handshake before its first step.
 *
 * A connection may come from a stranger, a process outside of the mesh.  So a connection has no
 * effect before its proof, and the number of accepted connections without a proof is limited.  At
 * the limit, the oldest connection without a proof is closed.  While all of these are younger than
 * SLOW_MS, new connections wait in the listener's queue.  A rank of the mesh connects again if its
 * connection was closed for this reason or if this process is out of descriptors. */
#include "runtime/transport/wireup.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/net/socket.h"
#include "runtime/net/peer_uid.h"
#include "runtime/util/clock.h"
#include "runtime/util/forks.h"
#include "runtime/util/log.h"
#include "runtime/util/thread.h"

#define CONNECT_MS 10000 /* time limit of one try, for a host that does not answer */
#define UNREACHABLE_MS \
    30000 /* time limit of all tries; a switch may be starting, or the queue full of strangers */
#define STRANGER_MS 10000 /* time limit for hello and proof together */
#define SLOW_MS 200 /* age from which a connection without a proof may be closed for a new one */
#define FIRST_PAUSE_MS 10 /* pause before the second try; each pause is twice the last one */
#define LONGEST_PAUSE_MS 500
#define UNWATCHED_MS 20 /* how long epoll ignores the listener if there is no room */
#define NO_DESCRIPTOR_MS 2000
/* How often the thread checks whether it must stop.  The check is needed because nothing wakes the
 * thread if the program has closed all descriptors. */
#define STOP_CHECK_MS 1000
#define LOG_MS 1000 /* least time between two log lines about strangers */
#define REFUSALS 3  /* number of refusals after which this rank's proof is taken as wrong */
#define LEAST_ACCEPTED 16
#define MOST_ACCEPTED 4096
#define ACCEPTS_A_TURN 64

enum wireup_step {
    PAUSES, /* before the next try, without a descriptor */
    CONNECTS,
    SHAKES_HANDS, /* the TLS handshake, before this rank's hello */
    AWAITS_NONCE,
    AWAITS_WELCOME,
    AWAITS_HELLO, /* this step and the next are of a connection that the peer opened */
    AWAITS_PROOF
};

struct made {
    struct made *next;
    struct arrival arrival;
};

struct pending {
    struct pending *next, *previous; /* oldest first */
    struct made *made;               /* memory for the arrival that reports the result */
    enum wireup_step step;
    int fd;
    struct secure_channel *channel; /* NULL if not encrypted or not connected */
    int handshakes;                 /* true until the channel's handshake has ended */
    int64_t since;                  /* time when the connection was begun or accepted */
    int64_t next_try;               /* end of the pause */
    int peer;
    /* Only a connection that this rank opens uses the next five fields. */
    char address[64];
    int port;
    int64_t first_try, pause;
    int refusals;
    /* The data of the proofs, received or sent so far. */
    struct hello hello;
    unsigned char nonce[NONCE_BYTES], proof[PROOF_BYTES];
    size_t got; /* bytes received of the item that the step waits for */
};

struct wireup {
    struct wireup_identity identity;
    struct secure_context *context; /* NULL if the mesh does not encrypt */
    int listener, epoll_fd;
    int wake_fd;          /* eventfd that wakes the thread for an order or a stop */
    int made_fd;          /* eventfd that is readable while there is an arrival */
    int netlink;          /* socket for asking the kernel about uids; -1 if not open */
    pthread_mutex_t lock; /* protects the fields from `orders` to `no_descriptor` */
    struct pending *orders;
    struct made *first, **last;
    int stops;
    /* true if no descriptor was left for NO_DESCRIPTOR_MS and no connection came since */
    int no_descriptor;
    /* Only the thread uses the fields from here on. */
    struct pending ring;     /* head of the list of all connections without a proof */
    int accepted;            /* number of connections in `ring` that peers or strangers opened */
    int64_t unwatched_until; /* time until which epoll ignores the listener; 0 if watched */
    int64_t no_descriptor_since, no_descriptor_last;
    int64_t strangers_logged; /* time of the last log line about strangers */
    int strangers;            /* number of strangers since that line */
    pthread_t thread;
    int has_thread;
};

/* ---- Proofs ----------------------------------------------------------------- */

ct_status wireup_proof(const struct wireup_identity *identity, const char *name,
                       const struct hello *hello, const unsigned char nonce[NONCE_BYTES],
                       unsigned char proof[PROOF_BYTES])
{
    unsigned char text[16 + MESH_TOKEN_BYTES + sizeof *hello + NONCE_BYTES] = { 0 };
    unsigned char *at = text + 16;

    if (identity->secret.size == 0) {
        memcpy(proof, identity->token, MESH_TOKEN_BYTES);
        memset(proof + MESH_TOKEN_BYTES, 0, PROOF_BYTES - MESH_TOKEN_BYTES);
        return CT_OK;
    }
    snprintf((char *)text, 16, "ct mesh %s", name);
    memcpy(at, identity->token, MESH_TOKEN_BYTES);
    memcpy(at += MESH_TOKEN_BYTES, hello, sizeof *hello);
    memcpy(at + sizeof *hello, nonce, NONCE_BYTES);
    return secret_hmac(&identity->secret, text, sizeof text, proof);
}

static int is_proved(struct wireup *w, const struct pending *p, const char *name)
{
    unsigned char right[PROOF_BYTES];

    return wireup_proof(&w->identity, name, &p->hello, p->nonce, right) == CT_OK
           && proof_equal(right, p->proof);
}

/* ---- The list --------------------------------------------------------------- */

static int is_accepted(const struct pending *p)
{
    return p->step >= AWAITS_HELLO;
}

static void pending_append(struct wireup *w, struct pending *p)
{
    p->next = &w->ring;
    p->previous = w->ring.previous;
    p->previous->next = p->next->previous = p;
    w->accepted += is_accepted(p);
}

/* Frees `p`, but does not close p->fd, which the mesh may own now. */
static void pending_drop(struct wireup *w, struct pending *p)
{
    w->accepted -= is_accepted(p);
    p->next->previous = p->previous;
    p->previous->next = p->next;
    free(p->made);
    free(p);
}

/* Closes the connection and its channel.  Removes the descriptor from epoll first.  Otherwise a
 * child of fork() that has the connection open could cause events that point to `p` after it is
 * freed. */
static void close_connection(struct wireup *w, struct pending *p)
{
    if (p->fd < 0)
        return;
    epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, p->fd, NULL);
    secure_channel_destroy(p->channel);
    descriptor_close(p->fd);
    p->channel = NULL;
    p->fd = -1;
}

static void close_accepted(struct wireup *w, struct pending *p)
{
    close_connection(w, p);
    pending_drop(w, p);
}

static void pending_watch(struct wireup *w, struct pending *p, uint32_t events, int operation)
{
    struct epoll_event event = { .events = events, .data.ptr = p };

    epoll_ctl(w->epoll_fd, operation, p->fd, &event);
}

/* ---- Arrivals ------------------------------------------------------------------ */

static void signal_mesh(struct wireup *w)
{
    const uint64_t one = 1;

    if (write(w->made_fd, &one, sizeof one) < 0)
        return; /* made_fd is readable already */
}

/* Queues an arrival for the mesh; the caller has the lock. */
static void push_arrival(struct wireup *w, struct pending *p, int fd, const char *why)
{
    struct made *made = p->made;

    p->made = NULL;
    made->arrival = (struct arrival){
        .peer = p->peer, .fd = fd, .channel = p->channel, .accepted = is_accepted(p)
    };
    p->channel = NULL;
    snprintf(made->arrival.why, sizeof made->arrival.why, "%s", why);
    *w->last = made;
    w->last = &made->next;
    signal_mesh(w);
}

static int wireup_send_all(struct pending *p, const void *data, size_t bytes)
{
    const struct iovec part = { (void *)(uintptr_t)data, bytes };

    return (p->channel ? secure_channel_write(p->channel, &part, 1)
                       : send(p->fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT))
           == (ssize_t)bytes;
}

/* Gives the connection to the mesh, after sending the welcome if there is one.  The peer may send
 * frames as soon as it has the welcome.  The lock is held until the mesh can find the connection.
 * So a rank that then sees the end of another connection of the peer finds this connection and the
 * frames on it. */
static void hand_over(struct wireup *w, struct pending *p, const void *welcome)
{
    epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, p->fd, NULL);
    socket_give_up_after(p->fd, 0); /* the peer may call no libct function for long */
    pthread_mutex_lock(&w->lock);
    if (welcome && !wireup_send_all(p, welcome, PROOF_BYTES)) {
        secure_channel_destroy(p->channel);
        descriptor_close(p->fd);
    } else {
        push_arrival(w, p, p->fd, "");
    }
    pthread_mutex_unlock(&w->lock);
    pending_drop(w, p);
}

/* ---- The rank that connects --------------------------------------------------- */

static void retry_later(struct wireup *w, struct pending *p)
{
    close_connection(w, p);
    p->step = PAUSES;
    p->pause = p->pause == 0                     ? FIRST_PAUSE_MS
               : 2 * p->pause < LONGEST_PAUSE_MS ? 2 * p->pause
                                                 : LONGEST_PAUSE_MS;
    p->next_try = clock_ms() + p->pause;
}

static void pending_fail(struct wireup *w, struct pending *p, const char *why)
{
    close_connection(w, p);
    pthread_mutex_lock(&w->lock);
    push_arrival(w, p, -1, why);
    pthread_mutex_unlock(&w->lock);
    pending_drop(w, p);
}

static void describe_limit(char *text, size_t size)
{
    struct rlimit limit = { 0 };

    getrlimit(RLIMIT_NOFILE, &limit);
    snprintf(text, size,
             "no file descriptor is left for connections between ranks (ulimit -n is %llu)",
             (unsigned long long)limit.rlim_cur);
}

/* Handles a failed connect().  A refused connection is final, since a rank listens before it
 * publishes its address; so the rank has left the job.  Any other error may be temporary. */
static void connect_failed(struct wireup *w, struct pending *p, int error)
{
    char why[160];

    if (error == ECONNRESET
        || (error != ECONNREFUSED && clock_ms() - p->first_try < UNREACHABLE_MS)) {
        retry_later(w, p);
        return;
    }
    snprintf(why, sizeof why, "no connection to port %d of %s: %s", p->port, p->address,
             strerror(error));
    pending_fail(w, p, why);
}

static void wireup_connect_begin(struct wireup *w, struct pending *p)
{
    ct_status status;
    char why[160];

    p->since = clock_ms();
    p->got = 0;
    forks_hold();
    status = socket_connect_begin(p->address, p->port, &p->fd);
    descriptor_own(status == CT_OK ? p->fd : -1);
    forks_release();
    if (status == CT_OK) {
        socket_notice_lost_host(p->fd);
        socket_give_up_after(p->fd, CONNECT_MS);
        p->step = CONNECTS;
        pending_watch(w, p, EPOLLOUT, EPOLL_CTL_ADD);
        return;
    }
    p->fd = -1;
    if (errno != EMFILE && errno != ENFILE) {
        connect_failed(w, p, errno);
    } else if (p->since - p->first_try < NO_DESCRIPTOR_MS) {
        retry_later(w, p);
    } else {
        describe_limit(why, sizeof why);
        pending_fail(w, p, why);
    }
}

static void greet(struct wireup *w, struct pending *p)
{
    p->hello = (struct hello){ .magic = HELLO_MAGIC, .from = w->identity.rank, .to = p->peer };
    if (getrandom(p->hello.nonce, sizeof p->hello.nonce, 0) != (ssize_t)sizeof p->hello.nonce
        || !wireup_send_all(p, &p->hello, sizeof p->hello)) {
        retry_later(w, p);
        return;
    }
    p->step = AWAITS_NONCE;
    pending_watch(w, p, EPOLLIN, EPOLL_CTL_MOD);
}

/* Handles a failed TLS handshake.  A wrong secret is final.  After any other failure this rank
 * tries again, since the peer may have been at its limit of connections. */
static void handshake_failed(struct wireup *w, struct pending *p, const char *what, int is_final)
{
    char why[sizeof p->made->arrival.why];

    if (!is_final && clock_ms() - p->first_try < UNREACHABLE_MS) {
        retry_later(w, p);
        return;
    }
    snprintf(why, sizeof why, "it %s", what);
    pending_fail(w, p, why);
}

static void handshake_step(struct wireup *w, struct pending *p)
{
    switch (secure_channel_handshake(p->channel)) {
    case CHANNEL_WAITS:
        break;
    case CHANNEL_OPEN:
        p->handshakes = 0;
        greet(w, p);
        break;
    case CHANNEL_FAILED:
        handshake_failed(w, p, secure_channel_why(p->channel),
                         secure_channel_status(p->channel) == CT_ERR_INVALID);
    }
}

static void connected(struct wireup *w, struct pending *p)
{
    socklen_t size = sizeof(int);
    int error = 0;

    if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    if (!error && socket_is_self_connected(p->fd))
        error = ECONNREFUSED;
    if (error) {
        connect_failed(w, p, error);
        return;
    }
    if (!w->context) {
        greet(w, p);
        return;
    }
    p->channel = secure_channel_create(w->context, p->fd, CHANNEL_CLIENT);
    p->handshakes = 1;
    p->step = SHAKES_HANDS;
    pending_watch(w, p, EPOLLIN, EPOLL_CTL_MOD);
    if (p->channel)
        handshake_step(w, p);
    else
        retry_later(w, p);
}

/* Returns 1 if the other end belongs to another user, as the kernel reports on one host.  The token
 * alone proves too little, since the rank that connects sends it to any process that has the port
 * now. */
static int is_another_users(struct wireup *w, const struct pending *p)
{
    struct sockaddr_storage peer = { 0 }, self = { 0 };
    socklen_t peer_size = sizeof peer, self_size = sizeof self;
    uid_t uid = 0;

    if (!w->identity.one_host || getpeername(p->fd, (struct sockaddr *)&peer, &peer_size) < 0
        || getsockname(p->fd, (struct sockaddr *)&self, &self_size) < 0)
        return 0;
    if (w->netlink < 0)
        descriptor_own(w->netlink = peer_uid_open());
    return peer_uid(w->netlink, &peer, &self, &uid) == PEER_HERE && uid != geteuid();
}

static void send_proof(struct wireup *w, struct pending *p)
{
    unsigned char proof[PROOF_BYTES];

    if (is_another_users(w, p)) {
        pending_fail(w, p, "its port belongs to another user's process");
        return;
    }
    if (wireup_proof(&w->identity, "connect", &p->hello, p->nonce, proof) != CT_OK) {
        pending_fail(w, p, ct_last_error());
        return;
    }
    if (!wireup_send_all(p, proof, sizeof proof)) {
        retry_later(w, p);
        return;
    }
    p->step = AWAITS_WELCOME;
    p->got = 0;
}

static void welcome_came(struct wireup *w, struct pending *p)
{
    if (is_proved(w, p, "accept"))
        hand_over(w, p, NULL);
    else
        pending_fail(w, p,
                     w->identity.secret.size > 0
                         ? "what answers at its port does not know the job's secret "
                           "(CT_STORE_SECRET, CT_STORE_SECRET_FILE)"
                         : "what answers at its port is not a rank of this job");
}

/* Handles a connection that the peer closed or that broke.  A peer that closes the connection after
 * this rank's proof has refused the proof or was at its limit of connections. */
static void peer_closed(struct wireup *w, struct pending *p, int closed)
{
    if (p->step == AWAITS_WELCOME && closed && ++p->refusals == REFUSALS)
        pending_fail(w, p,
                     w->identity.secret.size > 0
                         ? "it refused this rank's proof; give all ranks the same CT_STORE_SECRET "
                           "or CT_STORE_SECRET_FILE"
                         : "it does not take this rank for one of the job");
    else
        retry_later(w, p);
}

/* ---- The rank that accepts ---------------------------------------------------- */

static void refuse_stranger(struct wireup *w, struct pending *p)
{
    const int64_t now = clock_ms();

    w->strangers++;
    if (now - w->strangers_logged >= LOG_MS) {
        log_line(LOG_WARN,
                 "rank %d refused %d connection%s at its port that did not come from this job",
                 w->identity.rank, w->strangers, w->strangers == 1 ? "" : "s");
        w->strangers_logged = now;
        w->strangers = 0;
    }
    close_accepted(w, p);
}

static void hello_came(struct wireup *w, struct pending *p)
{
    const struct hello *hello = &p->hello;

    if (hello->magic != HELLO_MAGIC || hello->to != w->identity.rank || hello->from < 0
        || hello->from >= w->identity.size || hello->from == w->identity.rank
        || is_another_users(w, p)) {
        refuse_stranger(w, p);
        return;
    }
    p->peer = hello->from;
    p->step = AWAITS_PROOF;
    p->got = 0;
    if (getrandom(p->nonce, sizeof p->nonce, 0) != (ssize_t)sizeof p->nonce
        || !wireup_send_all(p, p->nonce, sizeof p->nonce))
        close_accepted(w, p);
}

static void proof_came(struct wireup *w, struct pending *p)
{
    unsigned char welcome[PROOF_BYTES];

    if (!is_proved(w, p, "connect"))
        refuse_stranger(w, p);
    else if (wireup_proof(&w->identity, "accept", &p->hello, p->nonce, welcome) != CT_OK)
        close_accepted(w, p); /* the peer tries again */
    else
        hand_over(w, p, welcome);
}

/* ---- One step ------------------------------------------------------------------ */

/* The item for which a step waits: its offset in struct pending, its size, and the function to call
 * when the whole item has come. */
struct expectation {
    size_t at, bytes;
    void (*then)(struct wireup *w, struct pending *p);
};

static const struct expectation expectations[] = {
    [AWAITS_NONCE] = { offsetof(struct pending, nonce), NONCE_BYTES, send_proof },
    [AWAITS_WELCOME] = { offsetof(struct pending, proof), PROOF_BYTES, welcome_came },
    [AWAITS_HELLO] = { offsetof(struct pending, hello), sizeof(struct hello), hello_came },
    [AWAITS_PROOF] = { offsetof(struct pending, proof), PROOF_BYTES, proof_came },
};

/* Continues the handshake of an accepted connection.  Returns 1 if the channel is open, else 0. */
static int accept_step(struct wireup *w, struct pending *p)
{
    const enum channel_step step = secure_channel_handshake(p->channel);

    p->handshakes = step != CHANNEL_OPEN;
    if (step == CHANNEL_FAILED)
        refuse_stranger(w, p);
    return step == CHANNEL_OPEN;
}

static ssize_t wireup_receive(struct pending *p, void *data, size_t bytes)
{
    return p->channel ? secure_channel_read(p->channel, data, bytes)
                      : recv(p->fd, data, bytes, MSG_DONTWAIT);
}

/* Advances a connection by what has come.  Never reads more than the expected item, since the bytes
 * after the last proof are frames for the mesh.  A channel that does not read ahead leaves the
 * frames in the socket, too. */
static void advance(struct wireup *w, struct pending *p)
{
    const struct expectation *next = &expectations[p->step];
    ssize_t n;

    if (p->step == CONNECTS) {
        connected(w, p);
        return;
    }
    if (p->step == SHAKES_HANDS) {
        handshake_step(w, p);
        return;
    }
    if (p->handshakes && !accept_step(w, p))
        return;
    n = wireup_receive(p, (char *)p + next->at + p->got, next->bytes - p->got);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        p->got += (size_t)n;
        if (p->got == next->bytes)
            next->then(w, p);
    } else if (is_accepted(p)) {
        close_accepted(w, p);
    } else {
        peer_closed(w, p, n == 0);
    }
}

/* ---- The listener ------------------------------------------------------------- */

static int most_accepted(void)
{
    struct rlimit limit = { .rlim_cur = 1024 };
    rlim_t most;

    getrlimit(RLIMIT_NOFILE, &limit);
    most = limit.rlim_cur / 4;
    return most < LEAST_ACCEPTED  ? LEAST_ACCEPTED
           : most > MOST_ACCEPTED ? MOST_ACCEPTED
                                  : (int)most;
}

/* Returns the oldest accepted connection without a hello, or else without a proof, that is older
 * than SLOW_MS; NULL if there is no such connection.  If a rank of the mesh opened it, that rank
 * tries again. */
static struct pending *oldest_unproved(const struct wireup *w)
{
    const int64_t now = clock_ms();
    struct pending *unproved = NULL;

    for (struct pending *p = w->ring.next; p != &w->ring; p = p->next) {
        if (!is_accepted(p) || now - p->since <= SLOW_MS)
            continue;
        if (p->step == AWAITS_HELLO)
            return p;
        if (!unproved)
            unproved = p;
    }
    return unproved;
}

static void watch_listener(struct wireup *w, int64_t unwatched_until)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &w->listener };

    if (!w->unwatched_until == !unwatched_until)
        return;
    epoll_ctl(w->epoll_fd, unwatched_until ? EPOLL_CTL_DEL : EPOLL_CTL_ADD, w->listener, &event);
    w->unwatched_until = unwatched_until;
}

static void set_no_descriptor(struct wireup *w, int none)
{
    pthread_mutex_lock(&w->lock);
    w->no_descriptor = none;
    if (none)
        signal_mesh(w);
    pthread_mutex_unlock(&w->lock);
}

static void take_accepted(struct wireup *w, int fd)
{
    struct pending *p = calloc(1, sizeof *p);

    if (w->no_descriptor_since > 0)
        set_no_descriptor(w, 0);
    w->no_descriptor_since = 0;
    if (!p || !(p->made = calloc(1, sizeof *p->made))
        || (w->context && !(p->channel = secure_channel_create(w->context, fd, CHANNEL_SERVER)))) {
        descriptor_close(fd);
        if (p)
            free(p->made);
        free(p);
        return;
    }
    p->handshakes = w->context != NULL;
    socket_nodelay(fd); /* the rank that connects sets this option too */
    socket_notice_lost_host(fd);
    p->fd = fd;
    p->peer = -1;
    p->step = AWAITS_HELLO;
    p->since = clock_ms();
    pending_append(w, p);
    pending_watch(w, p, EPOLLIN, EPOLL_CTL_ADD);
}

/* Notes that no descriptor was left for a connection.  If this lasts for NO_DESCRIPTOR_MS, peers
 * can't reach this rank, and its calls must report the reason.  A break of more than
 * 10 * UNWATCHED_MS between two calls starts a new period, even if no connection was accepted. */
static void note_no_descriptor(struct wireup *w)
{
    const int64_t now = clock_ms();

    if (w->no_descriptor_since == 0 || now - w->no_descriptor_last > 10 * UNWATCHED_MS)
        w->no_descriptor_since = now;
    w->no_descriptor_last = now;
    if (now - w->no_descriptor_since < NO_DESCRIPTOR_MS)
        return;
    w->no_descriptor_since = now; /* so that calls that start later fail, too */
    set_no_descriptor(w, 1);
}

/* Accepts a connection if there is room.  Returns 1 if there may be more to accept, else 0. */
static int wireup_accept_one(struct wireup *w)
{
    struct pending *old = NULL;
    int fd;

    if (w->accepted >= most_accepted() && !(old = oldest_unproved(w))) {
        watch_listener(w, clock_ms() + UNWATCHED_MS);
        return 0;
    }
    if (old)
        close_accepted(w, old);
    fd = descriptor_accept(w->listener);
    if (fd >= 0) {
        take_accepted(w, fd);
        return 1;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return 0;
    if (errno == EINTR || errno == ECONNABORTED)
        return 1;
    if ((errno == EMFILE || errno == ENFILE) && (old = oldest_unproved(w))) {
        close_accepted(w, old);
        return 1;
    }
    if (errno == EMFILE || errno == ENFILE)
        note_no_descriptor(w);
    watch_listener(w, clock_ms() + UNWATCHED_MS);
    return 0;
}

/* ---- A turn ------------------------------------------------------------------- */

static void take_orders(struct wireup *w)
{
    uint64_t rings;
    struct pending *orders;

    if (read(w->wake_fd, &rings, sizeof rings) < 0 && errno != EAGAIN)
        return;
    pthread_mutex_lock(&w->lock);
    orders = w->orders;
    w->orders = NULL;
    pthread_mutex_unlock(&w->lock);
    while (orders) {
        struct pending *p = orders;

        orders = p->next;
        pending_append(w, p);
        wireup_connect_begin(w, p);
    }
}

static void check_times(struct wireup *w)
{
    const int64_t now = clock_ms();

    for (struct pending *p = w->ring.next, *next; p != &w->ring; p = next) {
        next = p->next;
        if (p->step == PAUSES && p->next_try <= now)
            wireup_connect_begin(w, p);
        else if (is_accepted(p) && now - p->since > STRANGER_MS)
            close_accepted(w, p);
        else if (p->step == SHAKES_HANDS && now - p->since > STRANGER_MS)
            handshake_failed(w, p, "does not answer the TLS handshake", 0);
    }
    if (w->unwatched_until > 0 && w->unwatched_until <= now)
        watch_listener(w, 0);
}

/* Returns how many ms to wait for events: until check_times() has something to do, but at most
 * most_ms.  Without such a time, returns most_ms, which may be -1 for no limit. */
static int longest_sleep(const struct wireup *w, int most_ms)
{
    int64_t due = w->unwatched_until > 0 ? w->unwatched_until : INT64_MAX, left;

    for (const struct pending *p = w->ring.next; p != &w->ring; p = p->next) {
        const int64_t its = p->step == PAUSES                           ? p->next_try
                            : is_accepted(p) || p->step == SHAKES_HANDS ? p->since + STRANGER_MS + 1
                                                                        : INT64_MAX;

        due = its < due ? its : due;
    }
    if (due == INT64_MAX)
        return most_ms;
    left = due - clock_ms();
    left = left < 0 ? 0 : left;
    return most_ms >= 0 && most_ms < left ? most_ms : (int)left;
}

void wireup_turn(struct wireup *w, int timeout_ms)
{
    struct epoll_event events[64];
    const int n = epoll_wait(w->epoll_fd, events, 64, longest_sleep(w, timeout_ms));
    int some_wait = 0;

    /* The program may have closed all descriptors that it did not open.  The pause keeps the loop
     * from spinning then. */
    if (n < 0 && errno != EINTR)
        poll(NULL, 0, UNWATCHED_MS);

    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr == &w->wake_fd)
            take_orders(w);
        else if (events[i].data.ptr == &w->listener)
            some_wait = 1;
        else
            advance(w, events[i].data.ptr);
    }
    check_times(w);
    for (int i = 0; some_wait && i < ACCEPTS_A_TURN; i++)
        some_wait = wireup_accept_one(w);
}

static void *wireup_run(void *arg)
{
    struct wireup *w = arg;
    int stops = 0;

    while (!stops) {
        wireup_turn(w, STOP_CHECK_MS);
        pthread_mutex_lock(&w->lock);
        stops = w->stops;
        pthread_mutex_unlock(&w->lock);
    }
    return NULL;
}

/* ---- Called by the mesh -------------------------------------------------------- */

static void wireup_wake(struct wireup *w)
{
    const uint64_t one = 1;

    if (write(w->wake_fd, &one, sizeof one) < 0)
        return; /* the eventfd's counter is full, so the thread wakes anyway */
}

ct_status wireup_connect(struct wireup *w, int peer, const char *address, int port)
{
    struct pending *p = calloc(1, sizeof *p);

    if (!p || !(p->made = calloc(1, sizeof *p->made))) {
        free(p);
        return ct_fail(CT_ERR_NOMEM, "no memory for a connection to rank %d", peer);
    }
    p->fd = -1;
    p->peer = peer;
    p->port = port;
    p->first_try = clock_ms();
    snprintf(p->address, sizeof p->address, "%s", address);
    pthread_mutex_lock(&w->lock);
    p->next = w->orders;
    w->orders = p;
    pthread_mutex_unlock(&w->lock);
    wireup_wake(w);
    return CT_OK;
}

int wireup_fd(const struct wireup *w)
{
    return w->made_fd;
}

int wireup_take(struct wireup *w, struct arrival *arrival)
{
    struct made *made;
    uint64_t rings;

    pthread_mutex_lock(&w->lock);
    made = w->first;
    if (made) {
        w->first = made->next;
        if (!w->first)
            w->last = &w->first;
        *arrival = made->arrival;
        free(made);
    } else if (read(w->made_fd, &rings, sizeof rings) < 0) {
        /* the eventfd was empty */
    }
    pthread_mutex_unlock(&w->lock);
    return made != NULL;
}

int wireup_is_full(struct wireup *w, char *why, size_t size)
{
    int full;

    pthread_mutex_lock(&w->lock);
    full = w->no_descriptor;
    pthread_mutex_unlock(&w->lock);
    if (full)
        describe_limit(why, size);
    return full;
}

static ct_status wireup_start_thread(struct wireup *w)
{
    const int error = thread_start(&w->thread, wireup_run, w);

    w->has_thread = error == 0;
    return error ? ct_fail(CT_ERR_SYSTEM, "no thread for connections: %s", strerror(error)) : CT_OK;
}

static ct_status open_descriptors(struct wireup *w)
{
    struct epoll_event wake_event = { .events = EPOLLIN, .data.ptr = &w->wake_fd };
    struct epoll_event listens = { .events = EPOLLIN, .data.ptr = &w->listener };

    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->made_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    descriptor_own(w->listener);
    descriptor_own(w->epoll_fd);
    descriptor_own(w->wake_fd);
    descriptor_own(w->made_fd);
    if (w->epoll_fd < 0 || w->wake_fd < 0 || w->made_fd < 0
        || epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->wake_fd, &wake_event) < 0
        || epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->listener, &listens) < 0)
        return ct_fail(CT_ERR_SYSTEM, "no descriptors for connections between ranks: %s",
                       strerror(errno));
    return CT_OK;
}

ct_status wireup_start(const struct wireup_identity *identity, int listener, int threaded,
                       struct wireup **wireup)
{
    const struct hello hello = { 0 };
    const unsigned char nonce[NONCE_BYTES] = { 0 };
    unsigned char proof[PROOF_BYTES];
    struct wireup *w = calloc(1, sizeof *w);
    ct_status status;

    if (!w) {
        descriptor_close(listener);
        return ct_fail(CT_ERR_NOMEM, "no memory for connections between ranks");
    }
    w->identity = *identity;
    w->listener = listener;
    w->epoll_fd = w->wake_fd = w->made_fd = w->netlink = -1;
    w->last = &w->first;
    w->ring.next = w->ring.previous = &w->ring;
    pthread_mutex_init(&w->lock, NULL);
    /* With a secret, fails here if libcrypto can't be loaded, not at the first connection. */
    status = wireup_proof(identity, "connect", &hello, nonce, proof);
    if (status == CT_OK && identity->encrypts)
        status = secret_context(&identity->secret, "mesh", &w->context);
    if (status == CT_OK)
        status = open_descriptors(w);
    if (status == CT_OK && threaded)
        status = wireup_start_thread(w);
    if (status != CT_OK) {
        wireup_stop(w);
        return status;
    }
    *wireup = w;
    return CT_OK;
}

static void stop_thread(struct wireup *w)
{
    if (!w->has_thread)
        return;
    pthread_mutex_lock(&w->lock);
    w->stops = 1;
    pthread_mutex_unlock(&w->lock);
    wireup_wake(w);
    pthread_join(w->thread, NULL);
}

static void close_descriptors(const int *fds, int count)
{
    for (int i = 0; i < count; i++)
        if (fds[i] >= 0)
            descriptor_close(fds[i]);
}

void wireup_stop(struct wireup *w)
{
    struct arrival arrival;

    if (!w)
        return;
    stop_thread(w);
    while (w->orders) {
        struct pending *p = w->orders;

        w->orders = p->next;
        free(p->made);
        free(p);
    }
    while (w->ring.next != &w->ring) {
        close_connection(w, w->ring.next);
        pending_drop(w, w->ring.next);
    }
    while (wireup_take(w, &arrival))
        if (arrival.fd >= 0) {
            secure_channel_destroy(arrival.channel);
            descriptor_close(arrival.fd);
        }
    secure_context_destroy(w->context);
    close_descriptors((const int[]){ w->listener, w->epoll_fd, w->wake_fd, w->made_fd, w->netlink },
                      5);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
