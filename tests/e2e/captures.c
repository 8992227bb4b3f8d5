/* SPDX-License-Identifier: Apache-2.0 */
/* captures.c - writes what all packets of an interface hold to standard output, until SIGTERM.
 *     e2e_captures eth0 >packets        "up" on stderr when it has begun */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char packet[1 << 18];
    const int much = 64 << 20;
    const int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
    ssize_t n;

    at.sll_ifindex = argc == 2 ? (int)if_nametoindex(argv[1]) : 0;
    if (fd < 0 || at.sll_ifindex == 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        perror("e2e_captures");
        return 1;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &much, sizeof much);
    fprintf(stderr, "up\n");
    while ((n = recv(fd, packet, sizeof packet, 0)) > 0)
        if (write(STDOUT_FILENO, packet, (size_t)n) < 0)
            return 1;
    return 1;
}
