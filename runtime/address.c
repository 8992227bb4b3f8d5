/* SPDX-License-Identifier: Apache-2.0 */
/* address.c - which of this host's addresses to give to peers.  No names are looked up. */
#include "runtime/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/socket.h"
#include "runtime/store/store.h"

static int to_text(const struct sockaddr *address, char *text, size_t size)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;

    if (address->sa_family == AF_INET)
        return inet_ntop(AF_INET, &v4->sin_addr, text, (socklen_t)size) != NULL;
    return address->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)
           && inet_ntop(AF_INET6, &v6->sin6_addr, text, (socklen_t)size) != NULL;
}

static ct_status first_interface(char *text, size_t size)
{
    struct ifaddrs *all;
    int found = 0;

    if (getifaddrs(&all) < 0)
        return ct_fail(CT_ERR_SYSTEM, "getifaddrs: %s", strerror(errno));
    for (struct ifaddrs *i = all; i && !found; i = i->ifa_next)
        found = i->ifa_addr && (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK)
                && to_text(i->ifa_addr, text, size);
    freeifaddrs(all);
    return found ? CT_OK
                 : ct_fail(CT_ERR_SYSTEM, "this host has no interface but loopback, and the ranks "
                                          "are on several hosts");
}

static int is_loopback(const char *address)
{
    return !strncmp(address, "127.", 4) || !strcmp(address, "::1");
}

ct_status own_address(ct_store *store, int one_host, char *address, size_t size)
{
    const int fd = store_client_fd(store);

    if (fd >= 0 && socket_local_address(fd, address, size) == CT_OK
        && (one_host || !is_loopback(address)))
        return CT_OK;
    if (!one_host) /* rank 0 may have reached its own store over loopback */
        return first_interface(address, size);
    snprintf(address, size, "127.0.0.1");
    return CT_OK;
}
