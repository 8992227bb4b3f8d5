/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_store.h - a client of a store's server: its making, its socket, and deaths that end its
 * waits. */
#ifndef RUNTIME_STORE_TCP_STORE_H
#define RUNTIME_STORE_TCP_STORE_H

#include "runtime/store/server/shared_secret.h"
#include "runtime/store/store.h"

struct control;

/* A TCP or abstract unix (host "@name", port 0) client.  Where the kind of store
 * server matters (the address to reach peers from), store_client_fd() is its
 * socket; -1 for every other kind, through prefixes. */
ct_status store_client_connect(const char *host, int port, int64_t deadline, int timeout_ms,
                               ct_store **store);
/* The same with a secret that was given otherwise than by the environment. */
ct_status store_client_connect_with(const struct secret *secret, const char *host, int port,
                                    int64_t deadline, int timeout_ms, ct_store **store);
/* From here on a wait at this server ends with CT_ERR_PEER when the control page notes a death
 * beyond the first `known` of them; any: also that of a worker which ended well, since the wait is
 * for all workers.  control stays the caller's; NULL: no more.  Nothing for another kind of store.
 */
void store_tells(ct_store *store, struct control *control, uint32_t known, int any);
/* The first `known` deaths were taken up otherwise, and end no wait any more. */
void store_knows(ct_store *store, uint32_t known);
/* CT_ERR_PEER if a wait would end so now: for a caller that waits for the same ranks otherwise. */
ct_status store_look(ct_store *store);
int store_client_fd(ct_store *store);
int store_client_socket(const ct_store *store); /* without looking through prefixes */

#endif
