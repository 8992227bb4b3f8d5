/* SPDX-License-Identifier: Apache-2.0 */
/* network_figures.c - the kernel's figures of the network.
 *
 * TCP measures the round trip of each connection, and the driver of a network card knows the speed
 * of its link; NCCL and Open MPI use the link's speed, too.  We can't see whether a switch or a
 * hypervisor gives less; the user can set CT_NETWORK. */
#include "runtime/bootstrap/network_figures.h"

#include <linux/tcp.h> /* netinet/tcp.h lacks tcpi_min_rtt */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/net/interface.h"
#include "runtime/net/socket.h"
#include "runtime/store/tcp_store.h"

/* The least round trip so far.  At the connection's start the kernels answered, which the store's
 * other clients do not delay. */
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

/* Allocates no memory: a rank without memory would know less than the others. */
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
            all.round_trip_us = (uint32_t)((UINT64_C(3) << i) / 2); /* the middle of the step */
            break;
        }
    }
    return all;
}
