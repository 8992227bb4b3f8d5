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
    /* A node of server->pending or ->unverified until the connection is admitted, then of
     * ->conns. */
    struct list_node all;
    struct list_node run; /* in server->running, when it has work for its turn */
    struct store_server *server;
    struct event readable, writable;
    struct send_queue out;
    int fd;
    struct secure_channel *channel; /* NULL: the client does not encrypt, or has sent nothing yet */
    int is_silent;  /* the server encrypts, and this connection's first byte has not come */
    int handshakes; /* the channel's handshake is not finished */
    int unverified; /* the connection is in server->unverified */
    int admitted;   /* a client that has sent the magic, or an agent */
    int blocked;    /* the socket takes no more */
    int paused;     /* not read: its request needs more turns, or an agent is queried about it */
    int broken;     /* closed at its next turn */
    int error;      /* errno that ended the socket; 0: one side closed it */
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
    struct conn *current; /* the connection that is fed; its replies gather in `answers` */
    size_t answers_size;
    struct {
        const char *why;
        char host[REFUSED_HOST]; /* the client's address; "" for a unix socket */
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
void conn_send_value(struct conn *conn, struct value *value); /* NULL: no memory, closes it */
void conn_run_later(struct conn *conn);
/* Gives turns to the engine and to connections that have work, for WORK_US. */
void server_work(struct store_server *server);

/* ---- server.c --------------------------------------------------------------- */

/* Logs the first connection that was closed for this reason; only counts the later ones from the
 * same host. */
void server_log_refusal(struct store_server *server, const struct conn *conn, const char *why);
void server_admit(struct conn *conn);
/* Makes the connection pending again, so that the server closes it some seconds later. */
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

/* Bytes for the client, such as the nonce and the proof. */
struct admission_reply {
    unsigned char bytes[NONCE_BYTES + PROOF_BYTES];
    size_t size;
};

struct admission *admission_create(void);
void admission_destroy(struct admission *admission); /* NULL is fine */
/* Finds out where a new connection comes from.  PENDING, or REFUSED. */
enum admission_state admission_locate(struct conn *conn, const char **why);
int admission_is_remote(
    const struct conn *conn); /* neither of our uid nor from an allowed network */
int admission_is_launcher(const struct conn *conn); /* it says so, but its proof is missing */
/* Takes bytes of a pending connection; *used counts those of its hello and proof.  PENDING: more
 * bytes are needed.  The connection is not read while conn->paused. */
enum admission_state admission_feed(struct conn *conn, const unsigned char *data, size_t bytes,
                                    size_t *used, struct admission_reply *reply, const char **why);
/* Notes how many launchers were queried.  PENDING: their answers are missing; REFUSED: none was
 * queried. */
enum admission_state admission_queried(struct conn *conn, uint32_t query, int launchers,
                                       const char **why);
/* Takes the answer of one launcher.  1: the connection can be fed again; 0: other answers are
 * missing. */
int admission_answer(struct conn *conn, int ours);
uint32_t admission_query(const struct conn *conn); /* the number of its query; 0: none */

/* ---- launcher_peers.c ------------------------------------------------------- */

int agent_start(struct conn *conn); /* -1: no memory */
void agent_free(struct conn *conn);
/* Takes bytes of an agent.  -1: it broke the protocol. */
int agent_feed(struct conn *conn, const unsigned char *data, size_t bytes);
/* Queries the agents of its host about a pending connection.  Returns how many; *query is the
 * number of the query. */
int agents_query(struct conn *conn, uint32_t *query);

#endif
