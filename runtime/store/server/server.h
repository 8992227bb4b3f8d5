/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the store's server, and the policy that says which clients the server admits.  The
 * server runs on the event loop of ctrun or of server_thread.c. */
#ifndef RUNTIME_STORE_SERVER_SERVER_H
#define RUNTIME_STORE_SERVER_SERVER_H

#include "config/values/subnet.h"
#include "runtime/net/shared_secret.h"
#include "runtime/util/error.h"

struct event_base;

/* Limits the memory that clients may use, and says which clients the server admits.  A client on
 * this host is admitted if it has the server's uid.  A client on another host is admitted if it
 * knows the secret, if its network is allowed, or if a launcher on its host that knows the secret
 * confirms its uid. */
struct store_policy {
    size_t memory;  /* most bytes of all keys, values, requests and unsent replies together */
    size_t request; /* most bytes of a request */
    int clients;    /* most connections */
    struct secret secret;
    struct networks allow;
    /* Encrypts connections to other hosts with the secret, and refuses unencrypted connections from
     * other hosts. */
    int encrypts;
    int open; /* there is no secret, and clients on other hosts are admitted without a secret */
};

#define STORE_POLICY_INIT                                                       \
    {                                                                           \
        .memory = (size_t)4 << 30, .request = (size_t)1 << 30, .clients = 65536 \
    }

/* Makes a server, which takes over listen_fd, a listening TCP or Unix socket.  Over a Unix socket,
 * the server admits only clients of this process's uid.  The functions must be called on the event
 * loop's thread, except store_server_clients(). */
struct store_server;
ct_status store_server_create(struct event_base *base, int listen_fd,
                              const struct store_policy *policy, struct store_server **server);
/* Runs the event loop until event_base_loopbreak().  server may be NULL. */
void store_server_run(struct store_server *server, struct event_base *base);
/* Closes the connections of all clients and deletes all keys, so that nothing of an earlier round
 * is left.  Launchers stay connected. */
void store_server_clear(struct store_server *server);
int store_server_clients(struct store_server *server); /* any thread may call this */
/* Returns the number of connections that are not accepted or not admitted yet, plus the number of
 * launchers without a note. */
int store_server_newcomers(const struct store_server *server);
/* Returns 1 if the key exists.  wire_key is "/" + key. */
int store_server_has(const struct store_server *server, const char *wire_key);
/* Makes the server call on_accept() for each connection that it accepts.  NULL ends that. */
void store_server_on_connection(struct store_server *server, void (*on_accept)(void *arg),
                                void *arg);
/* Sets a key like a client's SET.  Clients that wait for the key get their reply. */
void store_server_put(struct store_server *server, const char *wire_key, const void *data,
                      size_t bytes);
void store_server_accept_no_more(struct store_server *server); /* refuses new connections */
void store_server_destroy(struct store_server *server);        /* NULL is fine */

#endif
