/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_BOOTSTRAP_OWN_ADDRESS_H
#define RUNTIME_BOOTSTRAP_OWN_ADDRESS_H

#include "runtime/util/error.h"

/* The literal address at which peers reach this rank: the one it reached the
 * store from; without a socket to a store, loopback when all ranks are on this
 * host, else that of the default route's interface, or of the first one that is up and
 * leads out of this host.  CT_INTERFACE (or GLOO_SOCKET_IFNAME) names another. */
ct_status own_address(ct_store *store, int one_host, char *address, size_t size);

#endif
