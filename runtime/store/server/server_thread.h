/* SPDX-License-Identifier: Apache-2.0 */
/* server_thread.h - the store's server on its own thread, for a rank that hosts the store.  If the
 * environment has a secret, clients on other hosts must know it.  Without a secret, clients on
 * other hosts are admitted, as by PyTorch. */
#ifndef RUNTIME_STORE_SERVER_SERVER_THREAD_H
#define RUNTIME_STORE_SERVER_SERVER_THREAD_H

#include "runtime/net/shared_secret.h"

struct store_thread;
ct_status store_thread_start(int listen_fd, struct store_thread **host);
/* Does the same with this secret instead of the environment's. */
ct_status store_thread_start_with(int listen_fd, const struct secret *secret,
                                  struct store_thread **host);
int store_thread_clients(struct store_thread *host);
void store_thread_stop(struct store_thread *host); /* NULL is fine */

#endif
