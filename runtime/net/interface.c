/* SPDX-License-Identifier: Apache-2.0 */
/* interface.c - the network interfaces of this host.  /proc/net/route tells which one has
 * the default route. */
#include "runtime/net/interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

void default_interface(char name[IF_NAMESIZE])
{
    FILE *routes = fopen("/proc/net/route", "re");
    char line[256], interface[IF_NAMESIZE];
    unsigned to, flags, metric, mask, least = UINT32_MAX;

    name[0] = 0;
    while (routes && fgets(line, sizeof line, routes))
        if (sscanf(line, "%15s %x %*x %x %*d %*d %u %x", interface, &to, &flags, &metric, &mask)
                == 5
            && to == 0 && mask == 0 && (flags & 1) && metric < least) {
            least = metric;
            snprintf(name, IF_NAMESIZE, "%s", interface);
        }
    if (routes)
        fclose(routes);
}

void default_hardware(char text[HARDWARE_TEXT])
{
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = { 0 };
    const unsigned char *bytes = (const unsigned char *)request.ifr_hwaddr.sa_data;

    text[0] = 0;
    default_interface(request.ifr_name);
    if (fd >= 0 && request.ifr_name[0] && ioctl(fd, SIOCGIFHWADDR, &request) == 0)
        snprintf(text, HARDWARE_TEXT, "%02x%02x%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2],
                 bytes[3], bytes[4], bytes[5]);
    if (fd >= 0)
        close(fd);
}

/* ---- Addresses ----------------------------------------------------------------- */

static int to_text(const struct sockaddr *address, char *text, size_t size)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;

    if (address->sa_family == AF_INET)
        return inet_ntop(AF_INET, &v4->sin_addr, text, (socklen_t)size) != NULL;
    return address->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)
           && inet_ntop(AF_INET6, &v6->sin6_addr, text, (socklen_t)size) != NULL;
}

/* True for bridges and similar interfaces that lead only to virtual machines and containers of this
 * host and so to no peer. */
static int is_inner(const char *name)
{
    static const char *const begin[] = { "docker", "br-", "virbr", "veth",
                                         "vnet",   "cni", "lxc",   "lxd" };
    int inner = 0;

    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        inner |= !strncmp(name, begin[i], strlen(begin[i]));
    return inner;
}

/* Returns the preference of an interface: 3 for the interface named `outward`, 1 for one that leads
 * to containers of this host, 2 for all others.  Of equal interfaces the first one is taken. */
static int preference(const struct ifaddrs *i, const char *outward)
{
    return !strcmp(i->ifa_name, outward) ? 3 : is_inner(i->ifa_name) ? 1 : 2;
}

static const char no_outward[] = "this host has no interface but loopback, and the ranks are on "
                                 "several hosts";

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
    return best ? CT_OK : ct_fail(CT_ERR_SYSTEM, "%s", no_outward);
}

/* Adds the addresses of all interfaces with the given preference to the list. */
static void interface_add_addresses(const struct ifaddrs *all, int preferred, char *list,
                                    size_t size)
{
    char outward[IF_NAMESIZE], address[64];

    default_interface(outward);
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        const size_t used = strlen(list);

        if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK)
            || preference(i, outward) != preferred || !to_text(i->ifa_addr, address, sizeof address)
            || used + strlen(address) + 2 > size)
            continue;
        snprintf(list + used, size - used, "%s%s", used ? "," : "", address);
    }
}

/* Writes the names of the interfaces that are up: "lo, eth0". */
static void list_names(const struct ifaddrs *all, char *text, size_t size)
{
    size_t used = 0;

    text[0] = 0;
    for (const struct ifaddrs *i = all; i && used < size; i = i->ifa_next)
        if (i->ifa_addr && (i->ifa_flags & IFF_UP) && i->ifa_addr->sa_family == AF_INET)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", i->ifa_name);
}

/* Writes the address of the interface that the value names.  The value is the name or the
 * address of an interface, or a list of these (gloo allows lists), of which the first one that
 * exists is taken. */
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

const char *interface_variable(void)
{
    static const char *const variables[] = { "CT_INTERFACE", "GLOO_SOCKET_IFNAME" };

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i]) && *getenv(variables[i]))
            return variables[i];
    return NULL;
}

ct_status interface_address(const char *what, const char *value, char *text, size_t size)
{
    struct ifaddrs *all;
    ct_status status;

    if (getifaddrs(&all) < 0)
        return ct_fail(CT_ERR_SYSTEM, "getifaddrs: %s", strerror(errno));
    status = chosen_interface(all, what, value, text, size);
    freeifaddrs(all);
    return status;
}

ct_status interface_outward(char *text, size_t size)
{
    struct ifaddrs *all;
    ct_status status;

    if (getifaddrs(&all) < 0)
        return ct_fail(CT_ERR_SYSTEM, "getifaddrs: %s", strerror(errno));
    status = best_interface(all, text, size);
    freeifaddrs(all);
    return status;
}

ct_status interface_addresses(char *list, size_t size)
{
    const char *variable = interface_variable();
    struct ifaddrs *all;

    if (variable)
        return interface_address(variable, getenv(variable), list, size);
    if (getifaddrs(&all) < 0)
        return ct_fail(CT_ERR_SYSTEM, "getifaddrs: %s", strerror(errno));
    *list = 0;
    for (int preferred = 3; preferred > 1 || (preferred > 0 && !*list); preferred--)
        interface_add_addresses(all, preferred, list, size);
    freeifaddrs(all);
    return *list ? CT_OK : ct_fail(CT_ERR_SYSTEM, "%s", no_outward);
}

static int has_ipv6_loopback(void)
{
    const struct sockaddr_in6 own = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int is_there = fd >= 0 && bind(fd, (const struct sockaddr *)&own, sizeof own) == 0;

    if (fd >= 0)
        close(fd);
    return is_there;
}

const char *interface_loopback_fault(int is_ipv6_fine)
{
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq loopback = { .ifr_name = "lo" };
    const char *fault = NULL;

    if (fd < 0)
        return NULL;
    if (ioctl(fd, SIOCGIFFLAGS, &loopback) == 0 && !(loopback.ifr_flags & IFF_UP))
        fault = "the loopback interface is down (ip link set lo up)";
    else if (bind(fd, (struct sockaddr *)&own, sizeof own) < 0 && errno == EADDRNOTAVAIL
             && !(is_ipv6_fine && has_ipv6_loopback()))
        fault = "the loopback interface has no address 127.0.0.1 (ip addr add 127.0.0.1/8 dev lo)";
    close(fd);
    return fault;
}

/* ---- Speed ---------------------------------------------------------------------- */

/* Returns the speed in Mbit/s; 0 if it is unknown.  ETHTOOL_GLINKSETTINGS, the successor of
 * ETHTOOL_GSET, needs two requests for the same number. */
static uint32_t speed_of(const char *name)
{
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ethtool_cmd command = { .cmd = ETHTOOL_GSET };
    struct ifreq request = { .ifr_data = (void *)&command };
    uint32_t speed = 0;

    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (fd >= 0 && ioctl(fd, SIOCETHTOOL, &request) == 0)
        speed = ethtool_cmd_speed(&command);
    if (fd >= 0)
        close(fd);
    /* A driver that does not know the speed returns 0, 0xffff or SPEED_UNKNOWN. */
    return speed == 0xffff || speed == (uint32_t)SPEED_UNKNOWN ? 0 : speed;
}

uint32_t interface_speed(const char *address)
{
    struct ifaddrs *all;
    char text[64];
    uint32_t speed = 0;

    if (getifaddrs(&all) < 0)
        return 0;
    for (const struct ifaddrs *i = all; i && speed == 0; i = i->ifa_next)
        if (i->ifa_addr && to_text(i->ifa_addr, text, sizeof text) && !strcmp(text, address))
            speed = speed_of(i->ifa_name);
    freeifaddrs(all);
    return speed;
}
