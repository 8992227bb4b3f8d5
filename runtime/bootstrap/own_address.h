/* SPDX-License-Identifier: Apache-2.0 */
/* own_address.h - finds the address that a rank publishes. */
#ifndef RUNTIME_BOOTSTRAP_OWN_ADDRESS_H
#define RUNTIME_BOOTSTRAP_OWN_ADDRESS_H

#include "runtime/util/error.h"

/* Writes the numeric address to which peers connect.  The first row that applies decides the
 * address:
 *
 *   - the address of the interface that CT_INTERFACE or GLOO_SOCKET_IFNAME names, if set
 *   - on rank 0's host, the address at which another host reached the store (REACHED_KEY), if known
 *   - the local address of the connection to the store, but loopback only if one_host is 1
 *   - loopback, if one_host is 1, which means that all ranks are on this host
 *   - the address of the default route's interface
 *   - the address of the first interface that is up and leads out of this host */
ct_status own_address(ct_store *store, int one_host, char *address, size_t size);

#endif
