/* SPDX-License-Identifier: Apache-2.0 */
/* server_thread.h - runs the store's server on its own thread, for a rank that hosts the store. */
#ifndef RUNTIME_STORE_SERVER_SERVER_THREAD_H
#define RUNTIME_STORE_SERVER_SERVER_THREAD_H

#include "runtime/net/shared_secret.h"

struct store_thread;
/* Starts a server, which takes over listen_fd, also if this fails.  If the environment has a
 * secret, clients on other hosts must know that secret.  Without a secret, clients on other hosts
 * are admitted, as by PyTorch. */
ct_status store_thread_start(int listen_fd, struct store_thread **host);
/* Starts a server with this secret instead of the environment's. */
ct_status store_thread_start_with(int listen_fd, const struct secret *secret,
                                  struct store_thread **host);
int store_thread_clients(struct store_thread *host);
void store_thread_stop(struct store_thread *host); /* NULL is fine */

#endif
