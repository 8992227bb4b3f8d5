/* SPDX-License-Identifier: Apache-2.0 */
/* server_thread.h - the store's server on a thread of its own, for a rank that hosts it.  If the
 * environment has a secret, clients on other hosts must know it; else they are admitted, as by
 * PyTorch. */
#ifndef RUNTIME_STORE_SERVER_SERVER_THREAD_H
#define RUNTIME_STORE_SERVER_SERVER_THREAD_H

#include "runtime/util/error.h"

struct store_host;
ct_status store_host_start(int listen_fd, struct store_host **host);
int store_host_clients(struct store_host *host);
void store_host_stop(struct store_host *host); /* NULL is fine */

#endif
