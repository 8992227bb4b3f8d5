/* SPDX-License-Identifier: Apache-2.0 */
/* connection.h - one connection to the store's server, and what the files of the
 * server share: store/server/listener.c accepts them, store/server/connection.c moves their bytes,
 * store/server/admission.c says who may come in, store/server/launcher_peers.c talks with launchers
 * elsewhere, store/server/server.c is the whole. */
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

struct conn {
    struct link all; /* of server->guests or ->strangers until it is known, then of ->conns */
    struct link run; /* in server->running, when it has something to do */
    struct store_server *server;
    struct event readable, writable;
    struct outbox out;
    int fd;
    int stranger;        /* in server->strangers */
    int known;           /* has said what it is */
    int blocked;         /* the socket takes no more */
    int resting;         /* not read: the table is busy with it, or it is asked about */
    int broken;          /* to be closed at its next turn */
    int last_words;      /* and when its answers are out */
    unsigned char *left; /* bytes that were read but not used yet */
    size_t left_at, left_size;
    struct table_client *table; /* NULL: not let in, or an agent */
    struct door *door;          /* NULL: let in */
    struct store_agent *agent;  /* NULL: a client */
    int64_t came;               /* clock_ms() */
};

struct store_server {
    struct event_base *base;
    struct event acceptable, later, patience;
    struct store_policy policy;
    struct table *table;
    struct link conns, guests, strangers, running;
    struct link agents;
    _Atomic int count; /* of all of them; other threads ask for it */
    int stranger_count;
    unsigned long served; /* times that somebody's bytes were looked at */
    int listener, spare, netlink;
    int is_unix;
    uint32_t questions; /* asked of agents so far */
    const struct store_agent_hooks *hooks;
    void *hooks_arg;
    void (*came)(void *arg); /* NULL: nobody wants to know */
    void *came_arg;
    struct conn *current; /* the one that is fed: its answers gather in `answers` */
    size_t answers_size;
    struct {
        const char *why;
        unsigned long count;
    } refusals[16]; /* said once each */
    unsigned char in[IN_BYTES], answers[IN_BYTES];
};

/* ---- store/server/connection.c ----------------------------------------------------------- */

extern const struct table_owner conn_owner; /* how the table answers */

int conn_start(struct conn *conn); /* -1: no memory */
void conn_free(struct conn *conn);
/* why: NULL, or what it did wrong, a constant. */
void conn_close(struct conn *conn, const char *why);
void conn_send(struct conn *conn, const void *data, size_t bytes);
void conn_take(struct conn *conn, const unsigned char *data, size_t bytes);
void conn_run_later(struct conn *conn);
/* A turn of all that is left to do. */
void server_work(struct store_server *server);

/* ---- store/server/server.c --------------------------------------------------------- */

/* One line for each `why`, with who was the first. */
void server_refused(struct store_server *server, const struct conn *conn, const char *why);

/* ---- store/server/listener.c --------------------------------------------------------- */

int guests_open(struct store_server *server); /* listens; -1: no memory */
void guests_close(struct store_server *server);
void server_gone(struct conn *conn); /* takes it off the server's lists */
/* From the guests to the clients, and back: guests are closed after some seconds. */
void server_let_in(struct conn *conn);
void server_back_to_guests(struct conn *conn);
/* All of them go, and what they asked with them; agents stay. */
void clients_forget(struct store_server *server);

/* ---- store/server/admission.c ----------------------------------------------------------- */

enum door_state { DOOR_SHUT, DOOR_CLIENT, DOOR_AGENT, DOOR_REFUSED };

struct door *door_create(void);
/* Looks where a guest is, as it comes.  SHUT, or REFUSED. */
enum door_state door_look(struct conn *conn, const char **why);
int door_is_strangers(const struct conn *conn); /* not known to be ours */
int door_is_launchers(const struct conn *conn); /* it has said so, and not proved it yet */
void door_destroy(struct door *door);           /* NULL is fine */
/* Bytes of a guest.  SHUT: more are needed, or an agent is asked; *used counts those that
 * were for the door.  It is not read any further while conn->resting. */
enum door_state door_knock(struct conn *conn, const unsigned char *data, size_t bytes, size_t *used,
                           const char **why);
/* What an agent says of a guest. */
void door_answer(struct conn *conn, int ours);
uint32_t door_question(const struct conn *conn); /* the number of its question; 0: none */

/* ---- store/server/launcher_peers.c --------------------------------------------------------- */

int agent_start(struct conn *conn); /* -1: no memory */
void agent_free(struct conn *conn);
/* Bytes of an agent.  -1: it broke the protocol. */
int agent_take(struct conn *conn, const unsigned char *data, size_t bytes);
/* Asks the agents of its host about a guest; gives how many. */
int agents_ask(struct conn *guest, uint32_t question);

#endif
