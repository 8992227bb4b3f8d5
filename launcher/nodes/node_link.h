/* SPDX-License-Identifier: Apache-2.0 */
/* node_link.h - the connection of an agent to the coordinator, which may not be up yet.
 *
 * Both ends send messages (docs/protocol.md, "Launchers").  The link also answers for this
 * host's programs: when one of them connects to the store without a secret, as PyTorch's do, the
 * coordinator asks to which user it belongs. */
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
    void (*message)(void *arg, int type, const char *text);
    void (*puts)(void *arg, const char *data, size_t bytes); /* the text of NODE_PUTS, unchanged */
    /* The link is closed already.  error: errno of its socket; 0: no error. */
    void (*broke)(void *arg, int error, const char *why);
};

struct node_link {
    int fd;                         /* -1: not connected */
    struct secure_channel *channel; /* NULL: not encrypted */
    struct event readable, writable;
    struct evbuffer *in, *out;
    int netlink;
    const struct node_link_hooks *hooks;
    void *arg;
};

void node_link_setup(struct node_link *link, const struct node_link_hooks *hooks, void *arg);
/* Takes over fd and its channel, which may be NULL.  -1: out of memory. */
int node_link_start(struct node_link *link, struct event_base *base, int fd,
                    struct secure_channel *channel);
void node_link_send(struct node_link *link, int type, const void *data, size_t bytes);
void node_link_print(struct node_link *link, int type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes now what the socket takes: the event loop may be about to stand still. */
void node_link_flush(struct node_link *link);
void node_link_close(struct node_link *link); /* closed already is fine */

/* ---- Connecting -------------------------------------------------------------- */

struct connect_retry_hooks {
    /* Called when the secret is proved.  The hook owns fd and its channel. */
    void (*connected)(void *arg, int fd, struct secure_channel *channel);
    void (*gave_up)(void *arg);            /* the error is logged */
    void (*waits)(void *arg, int seconds); /* it goes on trying */
};

struct connect_retry {
    struct event again;
    struct job_rendezvous *meet;
    int timeout; /* seconds */
    const char *limit;
    int64_t since, speak;
    int met;         /* there was a connection */
    int64_t refused; /* clock_ms() since which connections are refused; 0: they are not */
    int refusals;    /* times that our proof of the secret was refused */
    int pause_ms;
    const struct connect_retry_hooks *hooks;
    void *arg;
};

void connect_retry_setup(struct connect_retry *retry, struct event_base *base,
                         struct job_rendezvous *meet, const struct connect_retry_hooks *hooks,
                         void *arg);
/* The first attempt is in the loop's next turn, the last one after `timeout` seconds.  `limit` is
 * the option that sets `timeout`. */
void connect_retry_start(struct connect_retry *retry, int timeout, const char *limit);
void connect_retry_stop(struct connect_retry *retry); /* stopped already is fine */

#endif
