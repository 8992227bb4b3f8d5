/* SPDX-License-Identifier: Apache-2.0 */
/* own_address.c - which of this host's addresses a rank publishes.  No host names are looked up. */
#include "runtime/bootstrap/own_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/net/interface.h"
#include "runtime/net/socket.h"
#include "runtime/store/tcp_store.h"

static int to_text(const struct sockaddr *address, char *text, size_t size)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;

    if (address->sa_family == AF_INET)
        return inet_ntop(AF_INET, &v4->sin_addr, text, (socklen_t)size) != NULL;
    return address->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)
           && inet_ntop(AF_INET6, &v6->sin6_addr, text, (socklen_t)size) != NULL;
}

/* Bridges and the like to virtual machines and containers of this host, where no peer is. */
static int is_inner(const char *name)
{
    static const char *const begin[] = { "docker", "br-", "virbr", "veth",
                                         "vnet",   "cni", "lxc",   "lxd" };
    int inner = 0;

    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        inner |= !strncmp(name, begin[i], strlen(begin[i]));
    return inner;
}

/* The interface with the highest preference is taken, the first one of equals. */
static int preference(const struct ifaddrs *i, const char *outward)
{
    return !strcmp(i->ifa_name, outward) ? 3 : is_inner(i->ifa_name) ? 1 : 2;
}

static ct_status best_interface(const struct ifaddrs *all, char *text, size_t size)
{
    char outward[IF_NAMESIZE], address[64];
    int best = 0;

    default_interface(outward);
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK)
            || preference(i, outward) <= best || !to_text(i->ifa_addr, address, sizeof address))
            continue;
        best = preference(i, outward);
        snprintf(text, size, "%s", address);
    }
    return best ? CT_OK
                : ct_fail(CT_ERR_SYSTEM, "this host has no interface but loopback, and the ranks "
                                         "are on several hosts");
}

/* "lo, eth0" */
static void list_names(const struct ifaddrs *all, char *text, size_t size)
{
    size_t used = 0;

    text[0] = 0;
    for (const struct ifaddrs *i = all; i && used < size; i = i->ifa_next)
        if (i->ifa_addr && (i->ifa_flags & IFF_UP) && i->ifa_addr->sa_family == AF_INET)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", i->ifa_name);
}

/* The value is the name or an address of an interface; of a list (gloo's) the first that is there.
 */
static ct_status chosen_interface(const struct ifaddrs *all, const char *variable,
                                  const char *value, char *text, size_t size)
{
    char names[256], name[64];

    for (const char *at = value; *at; at += strcspn(at, ","), at += *at == ',') {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        for (const struct ifaddrs *i = all; i; i = i->ifa_next)
            if (i->ifa_addr && (i->ifa_flags & IFF_UP) && to_text(i->ifa_addr, text, size)
                && (!strcmp(i->ifa_name, name) || !strcmp(text, name)))
                return CT_OK;
    }
    list_names(all, names, sizeof names);
    return ct_fail(
        CT_ERR_INVALID,
        "%s=%s: this host has no interface of that name or address that is up; it has %s", variable,
        value, names);
}

static ct_status from_interfaces(const char *variable, char *text, size_t size)
{
    struct ifaddrs *all;
    ct_status status;

    if (getifaddrs(&all) < 0)
        return ct_fail(CT_ERR_SYSTEM, "getifaddrs: %s", strerror(errno));
    status = variable ? chosen_interface(all, variable, getenv(variable), text, size)
                      : best_interface(all, text, size);
    freeifaddrs(all);
    return status;
}

/* The variable that names the interface; NULL: none is set. */
static const char *interface_variable(void)
{
    static const char *const variables[] = { "CT_INTERFACE", "GLOO_SOCKET_IFNAME" };

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i]) && *getenv(variables[i]))
            return variables[i];
    return NULL;
}

static int is_loopback(const char *address)
{
    return !strncmp(address, "127.", 4) || !strcmp(address, "::1");
}

ct_status own_address(ct_store *store, int one_host, char *address, size_t size)
{
    const int fd = store_client_fd(store);

    if (interface_variable())
        return from_interfaces(interface_variable(), address, size);
    if (fd >= 0 && socket_local_address(fd, address, size) == CT_OK
        && (one_host || !is_loopback(address)))
        return CT_OK;
    if (!one_host) /* rank 0 may have reached its own store over loopback */
        return from_interfaces(NULL, address, size);
    snprintf(address, size, "127.0.0.1");
    return CT_OK;
}
