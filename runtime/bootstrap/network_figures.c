/* SPDX-License-Identifier: Apache-2.0 */
/* network_figures.c - reads the kernel's figures of the network: the round-trip time and the speed.
 *
 * TCP measures the round trip of each connection, and the driver of a network card knows the speed
 * of its link.  NCCL and Open MPI use the link's speed, too.  The kernel does not know whether a
 * switch or a hypervisor limits the speed further: large calls measure that (measure_network.c). */
#include "runtime/bootstrap/network_figures.h"

#include <linux/tcp.h> /* netinet/tcp.h lacks tcpi_min_rtt */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/net/interface.h"
#include "runtime/net/socket.h"
#include "runtime/store/tcp_store.h"

/* Returns the least round trip of the connection so far, in us, or 0 if it is unknown.  The kernels
 * answer the first packets of a connection themselves, so other clients of the store do not delay
 * these answers. */
static uint32_t round_trip_us(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t size = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_min_rtt : 0;
}

struct network_figures network_figures_read(ct_store *store, const char *address)
{
    const int fd = store_client_fd(store);
    struct network_figures figures = { .mbit_per_s = interface_speed(address) };
    char local[64];

    if (fd >= 0 && socket_local_address(fd, local, sizeof local) == CT_OK && !strcmp(local, address)
        && !socket_stays_here(fd))
        figures.round_trip_us = round_trip_us(fd);
    return figures;
}

/* Allocates no memory, since a rank without memory would get other figures than the other ranks. */
struct network_figures network_figures_of_hosts(const struct peer_host *hosts, int count)
{
    struct network_figures all = { 0 };
    int with[32] = { 0 }; /* hosts with a round trip from 2^i us to below 2^(i+1) us */
    int known = 0, below = 0;

    for (int i = 0; i < count; i++) {
        const struct network_figures *of = &hosts[i].network;

        if (of->mbit_per_s > 0 && (all.mbit_per_s == 0 || of->mbit_per_s < all.mbit_per_s))
            all.mbit_per_s = of->mbit_per_s;
        if (of->round_trip_us > 0) {
            with[31 - __builtin_clz(of->round_trip_us)]++;
            known++;
        }
    }
    for (int i = 0; i < 32 && known > 0; i++) {
        below += with[i];
        if (2 * below >= known) {
            all.round_trip_us = (uint32_t)((UINT64_C(3) << i) / 2); /* 1.5 * 2^i us */
            break;
        }
    }
    return all;
}
