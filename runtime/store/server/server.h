/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the store's server on an event loop of the caller's (ctrun's own loop, or that of
 * server_thread.c), and which clients it serves. */
#ifndef RUNTIME_STORE_SERVER_SERVER_H
#define RUNTIME_STORE_SERVER_SERVER_H

#include "config/values/subnet.h"
#include "runtime/store/server/shared_secret.h"
#include "runtime/util/error.h"

struct event_base;

/* How much the clients of a server may make it hold, and which clients it lets in.  Those on
 * this host are let in by uid; others with the secret, when a launcher
 * there that has the secret says that they are its user's, or from the networks. */
struct store_policy {
    size_t memory;  /* bytes of keys, values, requests and unread answers in all */
    size_t request; /* bytes of one request */
    int clients;
    struct secret secret;
    struct networks allow;
    int open; /* there is no secret, and other hosts are let in without */
};

#define STORE_POLICY_INIT                                                       \
    {                                                                           \
        .memory = (size_t)4 << 30, .request = (size_t)1 << 30, .clients = 65536 \
    }

/* Takes over listen_fd, a TCP or unix listener; on a unix one only clients of our uid are
 * served.  Not thread-safe: called on the loop's thread. */
struct store_server;
ct_status store_server_create(struct event_base *base, int listen_fd,
                              const struct store_policy *policy, struct store_server **server);
/* The base's loop, until event_base_loopbreak(); server may be NULL. */
void store_server_run(struct store_server *server, struct event_base *base);
/* An empty table: nothing of an older round is left. */
void store_server_clear(struct store_server *server);
int store_server_clients(struct store_server *server); /* connected now; from any thread */
int store_server_has(const struct store_server *server, const char *wire_key); /* "/" + key */
/* Calls came() for each connection as it comes; NULL: no more. */
void store_server_on_guest(struct store_server *server, void (*came)(void *arg), void *arg);
/* As a client's set; waiting clients get their answer. */
void store_server_put(struct store_server *server, const char *wire_key, const void *data,
                      size_t bytes);
void store_server_destroy(struct store_server *server); /* NULL is fine */

#endif
