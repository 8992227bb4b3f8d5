/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the store's server on the caller's event loop (ctrun's or server_thread.c's), and
 * which clients it serves. */
#ifndef RUNTIME_STORE_SERVER_SERVER_H
#define RUNTIME_STORE_SERVER_SERVER_H

#include "config/values/subnet.h"
#include "runtime/net/shared_secret.h"
#include "runtime/util/error.h"

struct event_base;

/* How much memory the clients of a server may use, and which clients it admits.  A client on this
 * host is admitted by its uid.  A client on another host is admitted if it knows the secret, if a
 * launcher there that knows the secret confirms its uid, or if its network is allowed. */
struct store_policy {
    size_t memory;  /* bytes of keys, values, requests and unsent replies in all */
    size_t request; /* bytes of one request */
    int clients;
    struct secret secret;
    struct networks allow;
    int encrypts; /* encrypts connections to other hosts, with the secret, and refuses unencrypted
                     ones */
    int open;     /* there is no secret, and clients on other hosts are admitted without one */
};

#define STORE_POLICY_INIT                                                       \
    {                                                                           \
        .memory = (size_t)4 << 30, .request = (size_t)1 << 30, .clients = 65536 \
    }

/* Takes over listen_fd, a TCP or unix listener.  A unix listener serves only clients of our uid.
 * Not thread-safe: call it on the loop's thread. */
struct store_server;
ct_status store_server_create(struct event_base *base, int listen_fd,
                              const struct store_policy *policy, struct store_server **server);
/* Runs the base's loop until event_base_loopbreak(); server may be NULL. */
void store_server_run(struct store_server *server, struct event_base *base);
/* Closes all clients and deletes all keys, so that nothing of an older round is left.  Launchers
 * stay connected. */
void store_server_clear(struct store_server *server);
int store_server_clients(struct store_server *server); /* any thread may call it */
/* Counts connections that wait to be accepted or admitted, and launchers without a note. */
int store_server_newcomers(const struct store_server *server);
int store_server_has(const struct store_server *server, const char *wire_key); /* "/" + key */
/* Calls on_accept() for each accepted connection; NULL: no more. */
void store_server_on_connection(struct store_server *server, void (*on_accept)(void *arg),
                                void *arg);
/* Sets a key as a client's SET does; clients that wait for the key get their reply. */
void store_server_put(struct store_server *server, const char *wire_key, const void *data,
                      size_t bytes);
void store_server_accept_no_more(struct store_server *server); /* connections are refused */
void store_server_destroy(struct store_server *server);        /* NULL is fine */

#endif
