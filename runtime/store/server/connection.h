/* SPDX-License-Identifier: Apache-2.0 */
/* connection.h - the state of a connection to the store's server, the state of the server, and the
 * functions by which the server's files call each other.
 *
 * server.c accepts connections.  connection.c reads and writes their bytes.  admission.c decides
 * which connections are admitted.  launcher_peers.c exchanges messages with launchers on other
 * hosts. */
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
    /* In server->pending or ->unverified until the connection is admitted, then in ->conns. */
    struct list_node all;
    struct list_node run; /* in server->running while the connection has work for its next turn */
    struct store_server *server;
    struct event readable, writable;
    struct send_queue out;
    int fd;
    struct secure_channel *channel; /* NULL before the client's first byte, and if unencrypted */
    int is_silent;  /* true if the server encrypts and the client has not sent a byte yet */
    int handshakes; /* true until the channel's handshake is finished */
    int unverified; /* true while the connection is in server->unverified */
    int admitted;   /* true for an agent, and for a client that has sent the magic number */
    int blocked;    /* true while the socket's send buffer is full */
    int paused;     /* not read while its request needs more turns or agents are queried about it */
    int broken;     /* true if the connection is to be closed at its next turn */
    int error;      /* errno that ended the socket; 0 if one side closed it */
    int closing;    /* true if the connection is to be closed when its replies are sent */
    unsigned char *backlog; /* bytes that were read from the socket but not handled yet */
    size_t backlog_at, backlog_size;
    struct session *session;     /* NULL before the admission, and for an agent */
    struct admission *admission; /* NULL after the admission */
    struct store_agent *agent;   /* NULL for a client */
    int64_t accepted_at;         /* time of the accept, by clock_ms() */
};

struct store_server {
    struct event_base *base;
    struct event acceptable, later, timer;
    struct store_policy policy;
    struct secure_context *context; /* NULL if the server does not encrypt */
    struct engine *engine;
    struct list_node conns, pending, unverified, running;
    struct list_node agents;
    _Atomic int count; /* number of connections; atomic, since other threads read it */
    int unverified_count;
    unsigned long reads; /* counts the calls that handled bytes of a connection */
    int listener, spare, netlink;
    int is_unix;
    uint32_t last_query; /* number of the last query to agents */
    const struct store_agent_hooks *hooks;
    void *hooks_arg;
    void (*on_accept)(void *arg); /* called for each accepted connection; may be NULL */
    void *on_accept_arg;
    struct conn *current; /* connection whose bytes are being handled; `answers` has its replies */
    size_t answers_size;
    struct {
        const char *why;
        char host[REFUSED_HOST]; /* the client's address; "" for a Unix socket */
        unsigned long count;
    } refusals[32]; /* each reason is logged once per host */
    unsigned char in[IN_BYTES], answers[IN_BYTES];
};

/* ---- connection.c ----------------------------------------------------------- */

extern const struct reply_hooks conn_reply_hooks; /* the engine sends replies by these hooks */

int conn_start(struct conn *conn); /* returns -1 if out of memory */
void conn_free(struct conn *conn);
/* Frees the connection.  If why is not NULL, logs why the server closed it.  why must be a constant
 * string. */
void conn_close(struct conn *conn, const char *why);
void conn_send(struct conn *conn, const void *data, size_t bytes);
/* Sends a value.  Closes the connection if value is NULL, which means out of memory. */
void conn_send_value(struct conn *conn, struct value *value);
void conn_run_later(struct conn *conn);
/* Gives turns to the engine and to connections that have work, for about WORK_US. */
void server_work(struct store_server *server);

/* ---- server.c --------------------------------------------------------------- */

/* Logs that a connection was closed for this reason.  After the first one from a host, only counts
 * the later ones. */
void server_log_refusal(struct store_server *server, const struct conn *conn, const char *why);
void server_admit(struct conn *conn);
/* Makes the connection pending again, so that the server closes it some seconds later. */
void server_unadmit(struct conn *conn);
void server_remove(struct conn *conn); /* removes the connection from the server's lists */

/* ---- admission.c ------------------------------------------------------------ */

enum admission_state {
    ADMISSION_PENDING,
    ADMISSION_QUERY, /* the caller must query the agents on the client's host */
    ADMISSION_CLIENT,
    ADMISSION_AGENT,
    ADMISSION_REFUSED
};

/* Bytes that the caller must send to the client, such as the nonce and the proof. */
struct admission_reply {
    unsigned char bytes[NONCE_BYTES + PROOF_BYTES];
    size_t size;
};

struct admission *admission_create(void);
void admission_destroy(struct admission *admission); /* NULL is fine */
/* Finds out where a new connection comes from.  Returns ADMISSION_PENDING or ADMISSION_REFUSED. */
enum admission_state admission_locate(struct conn *conn, const char **why);
int admission_is_remote(
    const struct conn *conn); /* 1 if neither its uid nor its network admits the client */
/* Returns 1 if the client says that it is a launcher but has not proved the secret yet. */
int admission_is_launcher(const struct conn *conn);
/* Takes bytes of a pending connection.  Sets *used to the number of bytes that belong to the hello
 * or the proof.  Returns ADMISSION_PENDING if more bytes are needed. */
enum admission_state admission_feed(struct conn *conn, const unsigned char *data, size_t bytes,
                                    size_t *used, struct admission_reply *reply, const char **why);
/* Notes that so many launchers were queried about the client.  Returns ADMISSION_PENDING, or
 * ADMISSION_REFUSED if no launcher was queried. */
enum admission_state admission_queried(struct conn *conn, uint32_t query, int launchers,
                                       const char **why);
/* Takes the answer of a launcher.  Returns 1 if the admission is decided, and 0 if answers of other
 * launchers are needed. */
int admission_answer(struct conn *conn, int ours);
/* Returns the number of the open query about the client; 0 if there is none. */
uint32_t admission_query(const struct conn *conn);

/* ---- launcher_peers.c ------------------------------------------------------- */

int agent_start(struct conn *conn); /* returns -1 if out of memory or if the socket is gone */
void agent_free(struct conn *conn);
/* Takes bytes from an agent.  Returns -1 if the agent broke the protocol. */
int agent_feed(struct conn *conn, const unsigned char *data, size_t bytes);
/* Queries the agents on the host of a pending connection about it.  Sets *query to the number of
 * the query.  Returns how many agents were queried. */
int agents_query(struct conn *conn, uint32_t *query);

#endif
