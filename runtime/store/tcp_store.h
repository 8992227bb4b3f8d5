/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_store.h - a client of a store's server: how it connects, its socket, and deaths that end its
 * waits. */
#ifndef RUNTIME_STORE_TCP_STORE_H
#define RUNTIME_STORE_TCP_STORE_H

#include "runtime/net/shared_secret.h"
#include "runtime/store/store.h"

struct control;

/* A client at a TCP address, which uses the secret of the environment, or of an abstract unix
 * socket (host "@name", port 0). */
ct_status store_client_connect(const char *host, int port, int64_t deadline, int timeout_ms,
                               ct_store **store);
/* With this secret, whatever the environment has. */
ct_status store_client_connect_with(const char *host, int port, const struct secret *secret,
                                    int64_t deadline, int timeout_ms, ct_store **store);
/* What it was connected with, through prefixes; of another kind of store, that of the environment.
 */
ct_status store_client_secret(ct_store *store, struct secret *secret);
/* A client on a connected socket, which it takes over, without a handshake.  where is the server's
 * name in error messages. */
ct_status store_client_over(int fd, const char *where, int timeout_ms, ct_store **store);
int store_client_fd(ct_store *store); /* its socket, through prefixes; -1: another kind of store */

/* From now on a wait ends with CT_ERR_PEER when the control page notes a death beyond the first
 * `known` ones.  any: also the end of a worker that exited with 0, for a wait that needs all
 * workers.  The caller keeps control; NULL: no more.  Other kinds of stores ignore it. */
void store_watch_deaths(ct_store *store, struct control *control, uint32_t known, int any);
/* The first `known` deaths end no wait any more: the caller has handled them. */
void store_skip_deaths(ct_store *store, uint32_t known);
/* CT_ERR_PEER if a wait would end now, for a caller that waits for the same ranks elsewhere. */
ct_status store_check_deaths(ct_store *store);
/* Waits until fd is readable, as the store's own waits do: CT_ERR_PEER when a death ends it. */
ct_status store_wait_beside(ct_store *store, int fd, int64_t deadline);

#endif
