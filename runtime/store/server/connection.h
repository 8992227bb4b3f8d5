/* SPDX-License-Identifier: Apache-2.0 */
/* connection.h - one connection to the store's server, and what the files of the server share:
 * server.c accepts connections, connection.c moves their bytes, admission.c decides which of them
 * are clients, launcher_peers.c exchanges messages with launchers on other hosts. */
#ifndef RUNTIME_STORE_SERVER_CONNECTION_H
#define RUNTIME_STORE_SERVER_CONNECTION_H

#include <event2/event_struct.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "runtime/store/engine/engine_internal.h"
#include "runtime/store/engine/send_queue.h"
#include "runtime/store/server/launcher_peers.h"
#include "runtime/store/server/server.h"

#define IN_BYTES (256u << 10)
#define REFUSED_HOST 64

struct conn {
    struct list_node
        all; /* in server->pending or ->unverified until it is admitted, then in ->conns */
    struct list_node run; /* in server->running, when it has work for its turn */
    struct store_server *server;
    struct event readable, writable;
    struct send_queue out;
    int fd;
    struct secure_channel *channel; /* NULL: it does not encrypt, or has said nothing yet */
    int is_silent;  /* the server encrypts, and this connection's first byte has not come */
    int handshakes; /* its channel does */
    int unverified; /* in server->unverified */
    int admitted;   /* a client that has sent the magic, or an agent */
    int blocked;    /* the socket takes no more */
    int paused;     /* not read: its request needs more turns, or an agent is queried about it */
    int broken;     /* closed at its next turn */
    int error;      /* errno of its socket's end; 0: it was closed here, or there */
    int closing;    /* closed when its replies are sent */
    unsigned char *backlog; /* bytes that were read but not fed yet */
    size_t backlog_at, backlog_size;
    struct session *session;     /* NULL: pending, or an agent */
    struct admission *admission; /* NULL: admitted */
    struct store_agent *agent;   /* NULL: a client */
    int64_t accepted_at;         /* clock_ms() */
};

struct store_server {
    struct event_base *base;
    struct event acceptable, later, timer;
    struct store_policy policy;
    struct secure_context *context; /* NULL: it does not encrypt */
    struct engine *engine;
    struct list_node conns, pending, unverified, running;
    struct list_node agents;
    _Atomic int count; /* of all connections; other threads read it */
    int unverified_count;
    unsigned long reads; /* how often bytes of a connection were fed */
    int listener, spare, netlink;
    int is_unix;
    uint32_t last_query; /* number of the last query to agents */
    const struct store_agent_hooks *hooks;
    void *hooks_arg;
    void (*on_accept)(void *arg); /* or NULL */
    void *on_accept_arg;
    struct conn *current; /* the one that is fed: its replies gather in `answers` */
    size_t answers_size;
    struct {
        const char *why;
        char host[REFUSED_HOST]; /* its address; "" of a unix socket */
        unsigned long count;
    } refusals[32]; /* each is logged once */
    unsigned char in[IN_BYTES], answers[IN_BYTES];
};

/* ---- connection.c ----------------------------------------------------------- */

extern const struct reply_hooks conn_reply_hooks; /* how the engine sends replies */

int conn_start(struct conn *conn); /* -1: no memory */
void conn_free(struct conn *conn);
/* why: NULL, or a constant that says what the client did wrong. */
void conn_close(struct conn *conn, const char *why);
void conn_send(struct conn *conn, const void *data, size_t bytes);
void conn_send_value(struct conn *conn, struct value *value); /* NULL: there was no memory for it */
void conn_run_later(struct conn *conn);
/* Turns of the connections and the engine that have work, for WORK_US. */
void server_work(struct store_server *server);

/* ---- server.c --------------------------------------------------------------- */

/* Logs one line for each `why`, which names the first connection. */
void server_log_refusal(struct store_server *server, const struct conn *conn, const char *why);
void server_admit(struct conn *conn);
/* Makes it pending again, so that it is closed after some seconds at the latest. */
void server_unadmit(struct conn *conn);
void server_remove(struct conn *conn); /* takes it off the server's lists */

/* ---- admission.c ------------------------------------------------------------ */

enum admission_state {
    ADMISSION_PENDING,
    ADMISSION_QUERY, /* the agents of its host must be queried: admission_queried() */
    ADMISSION_CLIENT,
    ADMISSION_AGENT,
    ADMISSION_REFUSED
};

/* Bytes for the other end: the nonce, the proof. */
struct admission_reply {
    unsigned char bytes[NONCE_BYTES + PROOF_BYTES];
    size_t size;
};

struct admission *admission_create(void);
void admission_destroy(struct admission *admission); /* NULL is fine */
/* Finds out where a new connection comes from.  PENDING, or REFUSED. */
enum admission_state admission_locate(struct conn *conn, const char **why);
int admission_is_remote(const struct conn *conn);   /* neither our uid nor an allowed network */
int admission_is_launcher(const struct conn *conn); /* its hello says so; the proof is missing */
/* Bytes of a pending connection; *used counts the bytes of the proof.  PENDING: more are needed. It
 * is not read while conn->paused. */
enum admission_state admission_feed(struct conn *conn, const unsigned char *data, size_t bytes,
                                    size_t *used, struct admission_reply *reply, const char **why);
/* So many launchers were queried.  PENDING: until they answer; or REFUSED. */
enum admission_state admission_queried(struct conn *conn, uint32_t query, int launchers,
                                       const char **why);
/* The answer of one of them.  1: the connection can be fed again; 0: other answers are missing. */
int admission_answer(struct conn *conn, int ours);
uint32_t admission_query(const struct conn *conn); /* the number of its query; 0: none */

/* ---- launcher_peers.c ------------------------------------------------------- */

int agent_start(struct conn *conn); /* -1: no memory */
void agent_free(struct conn *conn);
/* Bytes of an agent.  -1: it broke the protocol. */
int agent_feed(struct conn *conn, const unsigned char *data, size_t bytes);
/* Queries the agents of its host about a pending connection.  Returns how many; *query is the
 * number of the query. */
int agents_query(struct conn *conn, uint32_t *query);

#endif
