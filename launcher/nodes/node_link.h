/* SPDX-License-Identifier: Apache-2.0 */
/* node_link.h - an agent's connection to the coordinator, and the attempts to connect, since the
 * coordinator may start after the agent.
 *
 * Both ends send messages (docs/protocol.md, "Launchers").  If a program on this host connects to
 * the store without a secret, as PyTorch does, the coordinator asks the agent to which user the
 * program belongs.  The link answers this question. */
#ifndef LAUNCHER_NODES_NODE_LINK_H
#define LAUNCHER_NODES_NODE_LINK_H

#include <event2/event_struct.h>
#include <stdint.h>

#include "launcher/nodes/job_rendezvous.h"
#include "runtime/store/server/launcher_peers.h"
#include "runtime/net/shared_secret.h"
#include "runtime/util/error.h"

struct evbuffer;
struct event_base;
struct secure_channel;

struct node_link_hooks {
    /* Called for each message from the coordinator, except NODE_PUTS.  Control characters in the
     * text are replaced. */
    void (*message)(void *arg, int type, const char *text);
    /* Called for each NODE_PUTS, with the unchanged text. */
    void (*puts)(void *arg, const char *data, size_t bytes);
    /* Called after the link closed because of an error.  `error` is the errno of the socket; 0 if
     * the socket had no error.  `why` describes the cause. */
    void (*broke)(void *arg, int error, const char *why);
};

struct node_link {
    int fd;                         /* the socket; -1 if not connected */
    struct secure_channel *channel; /* NULL if the connection is not encrypted */
    struct event readable, writable;
    struct evbuffer *in, *out; /* received bytes of incomplete messages; bytes to send */
    int netlink;               /* socket for peer_uid(); -1 if closed */
    const struct node_link_hooks *hooks;
    void *arg;
};

void node_link_setup(struct node_link *link, const struct node_link_hooks *hooks, void *arg);
/* Starts to use a connected socket.  The link owns fd and channel from then on; channel may be
 * NULL. Returns -1 if out of memory, else 0. */
int node_link_start(struct node_link *link, struct event_base *base, int fd,
                    struct secure_channel *channel);
void node_link_send(struct node_link *link, int type, const void *data, size_t bytes);
void node_link_print(struct node_link *link, int type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sends at once as much as the socket takes.  For a caller that will block the event loop. */
void node_link_flush(struct node_link *link);
void node_link_close(struct node_link *link); /* does nothing if the link is closed */

/* ---- Connecting -------------------------------------------------------------- */

struct connect_retry_hooks {
    /* Called when the agent is connected and has proved that it knows the secret.  The hook owns fd
     * and its channel. */
    void (*connected)(void *arg, int fd, struct secure_channel *channel);
    /* Called after the last attempt failed.  The error is logged. */
    void (*gave_up)(void *arg);
    /* Called after a failed attempt that another attempt will follow, from 1 s after the start
     * on. */
    void (*waits)(void *arg, int seconds);
};

struct connect_retry {
    struct event again; /* timer of the next attempt */
    struct job_rendezvous *meet;
    int timeout;       /* seconds after which connect_retry gives up */
    const char *limit; /* option that sets `timeout`, for the error message */
    /* clock_ms() at the start; ms after the start at which the next warning is logged */
    int64_t since, speak;
    int met;         /* true if node 0 accepted a connection, even if the proof failed */
    int64_t refused; /* clock_ms() of the first of the latest refused connections; 0 if none */
    int refusals;    /* how often node 0 refused this node's proof of the secret */
    int pause_ms;    /* pause before the next attempt */
    const struct connect_retry_hooks *hooks;
    void *arg;
};

void connect_retry_setup(struct connect_retry *retry, struct event_base *base,
                         struct job_rendezvous *meet, const struct connect_retry_hooks *hooks,
                         void *arg);
/* Starts to connect.  The event loop makes the first attempt in its next turn and the last attempt
 * after `timeout` seconds.  `limit` is the option that sets `timeout`. */
void connect_retry_start(struct connect_retry *retry, int timeout, const char *limit);
void connect_retry_stop(struct connect_retry *retry); /* cancels the next attempt, if any */

#endif
