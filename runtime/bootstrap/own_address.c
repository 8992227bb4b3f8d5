/* SPDX-License-Identifier: Apache-2.0 */
/* own_address.c - chooses which of this host's addresses a rank publishes.  No host names are
 * looked up. */
#include "runtime/bootstrap/own_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bootstrap/rendezvous.h"
#include "runtime/net/interface.h"
#include "runtime/net/socket.h"
#include "runtime/store/tcp_store.h"

static int own_address_is_loopback(const char *address)
{
    return !strncmp(address, "127.", 4) || !strcmp(address, "::1");
}

static ct_status reached_address(ct_store *store, char *address, size_t size, int *known)
{
    static const char *const keys[] = { REACHED_KEY };
    void *value = NULL;
    size_t bytes = 0;
    ct_status status = ct_store_check(store, keys, 1, known);

    if (status == CT_OK && *known)
        status = ct_store_get(store, REACHED_KEY, -1, &value, &bytes);
    if (status == CT_OK && *known)
        snprintf(address, size, "%s", (const char *)value);
    free(value);
    return status;
}

ct_status own_address(ct_store *store, int one_host, char *address, size_t size)
{
    const char *variable = interface_variable();
    const int fd = store_client_fd(store);
    int known = 0;
    ct_status status = CT_OK;

    if (variable)
        return interface_address(variable, getenv(variable), address, size);
    if (fd >= 0 && !one_host && socket_stays_here(fd))
        status = reached_address(store, address, size, &known);
    if (status != CT_OK || known)
        return status;
    if (fd >= 0 && socket_local_address(fd, address, size) == CT_OK
        && (one_host || !own_address_is_loopback(address)))
        return CT_OK;
    if (!one_host) /* rank 0 may have reached its own store over loopback */
        return interface_outward(address, size);
    snprintf(address, size, "127.0.0.1");
    return CT_OK;
}
