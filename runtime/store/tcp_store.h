/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_store.h - a client of a store's server.  The functions connect the client, give its socket,
 * and make the client's waits end when a worker dies. */
#ifndef RUNTIME_STORE_TCP_STORE_H
#define RUNTIME_STORE_TCP_STORE_H

#include "runtime/net/shared_secret.h"
#include "runtime/store/store.h"

struct control;

/* Connects a client to a TCP address with the environment's secret, or to an abstract Unix socket
 * if host is "@name".  The port of a Unix socket is ignored. */
ct_status store_client_connect(const char *host, int port, int64_t deadline, int timeout_ms,
                               ct_store **store);
/* Connects a client like store_client_connect(), but with this secret. */
ct_status store_client_connect_with(const char *host, int port, const struct secret *secret,
                                    int64_t deadline, int timeout_ms, ct_store **store);
/* Copies the secret with which the store below all prefix stores connected.  If that store is not a
 * client, copies the environment's secret. */
ct_status store_client_secret(ct_store *store, struct secret *secret);
/* Makes a client from a connected socket, without a handshake.  The client takes the socket over.
 * `where` is the server's name in error messages. */
ct_status store_client_over(int fd, const char *where, int timeout_ms, ct_store **store);
/* Returns the socket of the store below all prefix stores; -1 if that store is not a client. */
int store_client_fd(ct_store *store);

/* Makes later waits end with CT_ERR_PEER when the control page shows a death after the first
 * `known` deaths.  If any is 1, the end of a worker that exited with code 0 also ends a wait, for
 * waits that need all workers.  If control is NULL, deaths no longer end waits.  The caller still
 * owns control.  Does nothing if the store is not a client. */
void store_watch_deaths(ct_store *store, struct control *control, uint32_t known, int any);
/* Makes the first `known` deaths end no wait, since the caller has handled them. */
void store_skip_deaths(ct_store *store, uint32_t known);
/* Returns CT_ERR_PEER if a death would end a wait now.  Used by callers that wait for the same
 * ranks by other means. */
ct_status store_check_deaths(ct_store *store);
/* Waits until fd is readable.  Returns CT_ERR_PEER if a death ended the wait. */
ct_status store_wait_beside(ct_store *store, int fd, int64_t deadline);

#endif
