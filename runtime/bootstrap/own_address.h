/* SPDX-License-Identifier: Apache-2.0 */
/* own_address.h - the address that a rank publishes. */
#ifndef RUNTIME_BOOTSTRAP_OWN_ADDRESS_H
#define RUNTIME_BOOTSTRAP_OWN_ADDRESS_H

#include "runtime/util/error.h"

/* Gives the literal address to which peers connect: the local address of the connection to the
 * store.  On rank 0's host that may be any address.  So there it is the address at which another
 * host reached the store, if that is known (REACHED_KEY). Without such a connection it is loopback
 * if all ranks are on this host, else the address of the default route's interface, or of the first
 * interface that is up and leads out of this host. CT_INTERFACE (or GLOO_SOCKET_IFNAME) names
 * another interface. */
ct_status own_address(ct_store *store, int one_host, char *address, size_t size);

#endif
