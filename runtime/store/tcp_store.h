/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_store.h - a client of a store's server: how it connects, its socket, and deaths that end its
 * waits. */
#ifndef RUNTIME_STORE_TCP_STORE_H
#define RUNTIME_STORE_TCP_STORE_H

#include "runtime/net/shared_secret.h"
#include "runtime/store/store.h"

struct control;

/* Connects a client to a TCP address, with the environment's secret, or to an abstract unix socket
 * (host "@name", port 0). */
ct_status store_client_connect(const char *host, int port, int64_t deadline, int timeout_ms,
                               ct_store **store);
/* Does the same with this secret instead of the environment's. */
ct_status store_client_connect_with(const char *host, int port, const struct secret *secret,
                                    int64_t deadline, int timeout_ms, ct_store **store);
/* Gives the secret with which the store below all prefixes was connected.  For a store of another
 * kind, gives the environment's secret. */
ct_status store_client_secret(ct_store *store, struct secret *secret);
/* Makes a client from a connected socket, without a handshake, and takes the socket over.  where:
 * the server's name in error messages. */
ct_status store_client_over(int fd, const char *where, int timeout_ms, ct_store **store);
int store_client_fd(ct_store *store); /* socket of the store below all prefixes; -1: another kind */

/* From now on, a wait ends with CT_ERR_PEER when the control page shows a death after the first
 * `known` deaths.  any: the end of a worker that exited with 0 counts, too, for a wait that needs
 * all workers.  The caller keeps control.  control NULL: deaths no longer end waits.  Stores of
 * other kinds ignore the call. */
void store_watch_deaths(ct_store *store, struct control *control, uint32_t known, int any);
/* The first `known` deaths no longer end a wait, since the caller has handled them. */
void store_skip_deaths(ct_store *store, uint32_t known);
/* Returns CT_ERR_PEER if a death would end a wait now.  For a caller that waits for the same ranks
 * elsewhere. */
ct_status store_check_deaths(ct_store *store);
/* Waits until fd is readable.  CT_ERR_PEER: a death ended the wait. */
ct_status store_wait_beside(ct_store *store, int fd, int64_t deadline);

#endif
