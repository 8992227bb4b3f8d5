/* SPDX-License-Identifier: Apache-2.0 */
/* peer_uid.c - asks the kernel (NETLINK_SOCK_DIAG) for the socket at the other end of a connection.
 *
 * If both ends of a connection are in one network namespace, both are sockets there.  The socket of
 * the other end has the same two addresses and ports in reverse order, and the kernel tells the uid
 * of its owner.  So a process of our user is recognized without a proof in its protocol.
 *
 * Three replies of the kernel prove nothing.  First, a socket that its process has closed, or that
 * no process has accepted yet, has inode 0, and its uid may read as root's.  Second, if no
 * connection has the two addresses and ports, the kernel returns a listener at one of them, so the
 * addresses in the reply are compared.  Third, in a user namespace all uids that are not mapped
 * there read as the overflow uid. */
#include "runtime/net/peer_uid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* An address as in the kernel's tables, where an IPv4-mapped IPv6 address is an IPv4 address. */
struct socket_end {
    int family;
    uint32_t address[4];
    uint16_t port; /* in network order, as is the address */
};

static struct socket_end end_of(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;
    struct socket_end end = { .family = address->ss_family };

    if (end.family == AF_INET) {
        end.address[0] = v4->sin_addr.s_addr;
        end.port = v4->sin_port;
    } else if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        end.family = AF_INET;
        memcpy(end.address, &v6->sin6_addr.s6_addr[12], 4);
        end.port = v6->sin6_port;
    } else {
        memcpy(end.address, &v6->sin6_addr, 16);
        end.port = v6->sin6_port;
    }
    return end;
}

struct query {
    struct nlmsghdr head;
    struct inet_diag_req_v2 about;
};

static int peer_uid_ask(int netlink, const struct socket_end *peer, const struct socket_end *self)
{
    struct query q = {
        .head = { .nlmsg_len = sizeof q,
                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST },
        .about = { .sdiag_family = (uint8_t)peer->family,
                   .sdiag_protocol = IPPROTO_TCP,
                   .idiag_states = ~0u },
    };

    q.about.id.idiag_sport = peer->port;
    q.about.id.idiag_dport = self->port;
    memcpy(q.about.id.idiag_src, peer->address, 16);
    memcpy(q.about.id.idiag_dst, self->address, 16);
    q.about.id.idiag_cookie[0] = q.about.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return send(netlink, &q, sizeof q, 0) == (ssize_t)sizeof q ? 0 : -1;
}

static struct socket_end end_in(const struct inet_diag_msg *found, const uint32_t address[4],
                                uint16_t port)
{
    struct socket_end end = { .family = found->idiag_family, .port = port };

    memcpy(end.address, address, sizeof end.address);
    if (end.family == AF_INET6 && !address[0] && !address[1] && address[2] == htonl(0xffff))
        end = (struct socket_end){ .family = AF_INET, .address = { address[3] }, .port = port };
    else if (end.family == AF_INET)
        end.address[1] = end.address[2] = end.address[3] = 0;
    return end;
}

static int same_end(struct socket_end a, const struct socket_end *b)
{
    return a.family == b->family && a.port == b->port
           && !memcmp(a.address, b->address, sizeof a.address);
}

/* Returns where the peer is if its socket has this state and inode.  Inode 0 may be a connection in
 * a listener's queue, which is established or about to be. */
static enum peer_place peer_uid_place_of(int state, unsigned long inode)
{
    if (inode == 0)
        return state == TCP_ESTABLISHED || state == TCP_SYN_RECV ? PEER_PENDING : PEER_ELSEWHERE;
    return (1 << state)
                   & (1 << TCP_ESTABLISHED | 1 << TCP_FIN_WAIT1 | 1 << TCP_FIN_WAIT2
                      | 1 << TCP_CLOSE_WAIT | 1 << TCP_LAST_ACK | 1 << TCP_CLOSING)
               ? PEER_HERE
               : PEER_ELSEWHERE;
}

static enum peer_place peer_uid_answer(int netlink, const struct socket_end *from,
                                       const struct socket_end *to, uid_t *uid)
{
    union {
        struct nlmsghdr head;
        char bytes[1024];
    } reply;
    const ssize_t n = recv(netlink, &reply, sizeof reply, 0);
    const struct inet_diag_msg *found = NLMSG_DATA(&reply.head);
    const struct nlmsgerr *error = NLMSG_DATA(&reply.head);

    if (n < (ssize_t)NLMSG_HDRLEN || !NLMSG_OK(&reply.head, (uint32_t)n))
        return PEER_UNKNOWN;
    if (reply.head.nlmsg_type == NLMSG_ERROR)
        return error->error == -ENOENT ? PEER_ELSEWHERE : PEER_UNKNOWN;
    if (reply.head.nlmsg_type != SOCK_DIAG_BY_FAMILY
        || reply.head.nlmsg_len < NLMSG_LENGTH(sizeof *found))
        return PEER_UNKNOWN;
    *uid = found->idiag_uid;
    return same_end(end_in(found, found->id.idiag_src, found->id.idiag_sport), from)
                   && same_end(end_in(found, found->id.idiag_dst, found->id.idiag_dport), to)
               ? peer_uid_place_of(found->idiag_state, found->idiag_inode)
               : PEER_ELSEWHERE;
}

#define OVERFLOW_UID 65534

static int every_uid_has_a_name(void)
{
    unsigned inside = 1, outside = 1, count = 0;
    FILE *map = fopen("/proc/self/uid_map", "re");

    if (!map)
        return 1; /* the kernel has no user namespaces */
    if (fscanf(map, "%u %u %u", &inside, &outside, &count) != 3)
        count = 0;
    fclose(map);
    return inside == 0 && count == UINT32_MAX;
}

int peer_uid_open(void)
{
    return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

enum peer_place peer_uid(int netlink, const struct sockaddr_storage *peer,
                         const struct sockaddr_storage *self, uid_t *uid)
{
    const struct socket_end from = end_of(peer), to = end_of(self);
    enum peer_place place = PEER_UNKNOWN;

    if (netlink >= 0 && peer_uid_ask(netlink, &from, &to) == 0)
        place = peer_uid_answer(netlink, &from, &to, uid);
    if (place == PEER_UNKNOWN)
        place = peer_uid_proc(peer, self, uid);
    return place == PEER_HERE && *uid == OVERFLOW_UID && !every_uid_has_a_name() ? PEER_UNKNOWN
                                                                                 : place;
}

/* ---- Without netlink (some sandboxes) ---------------------------------------- */

/* Writes an end as the tables in /proc/net print it: "0100007F:1F90".  The table of IPv6 also has
 * connections with IPv4-mapped addresses. */
static void print_end(const struct socket_end *end, int v6_table, char *text, size_t size)
{
    uint32_t words[4] = { end->address[0] };
    const int many = v6_table || end->family == AF_INET6;

    if (end->family == AF_INET6)
        memcpy(words, end->address, sizeof words);
    else if (v6_table) {
        words[0] = words[1] = 0;
        words[2] = htonl(0xffff);
        words[3] = end->address[0];
    }
    if (many)
        snprintf(text, size, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3],
                 ntohs(end->port));
    else
        snprintf(text, size, "%08X:%04X", words[0], ntohs(end->port));
}

static enum peer_place look_in(const char *path, int v6_table, const struct socket_end *from,
                               const struct socket_end *to, uid_t *uid)
{
    char wanted[128], there[64], line[512], local[64], remote[64];
    enum peer_place place = PEER_ELSEWHERE;
    unsigned long inode;
    unsigned owner, state;
    FILE *file = fopen(path, "re");

    if (!file)
        return PEER_UNKNOWN;
    print_end(from, v6_table, wanted, sizeof wanted);
    print_end(to, v6_table, there, sizeof there);
    while (place != PEER_HERE && fgets(line, sizeof line, file))
        if (sscanf(line, " %*d: %63s %63s %x %*s %*s %*s %u %*s %lu", local, remote, &state, &owner,
                   &inode)
                == 5
            && !strcmp(local, wanted) && !strcmp(remote, there)) {
            *uid = owner;
            place = peer_uid_place_of((int)(state & 31), inode);
        }
    fclose(file);
    return place;
}

enum peer_place peer_uid_proc(const struct sockaddr_storage *peer,
                              const struct sockaddr_storage *self, uid_t *uid)
{
    const struct socket_end from = end_of(peer), to = end_of(self);
    enum peer_place place = PEER_ELSEWHERE, in_v6;

    if (from.family == AF_INET)
        place = look_in("/proc/net/tcp", 0, &from, &to, uid);
    if (place == PEER_HERE || place == PEER_PENDING)
        return place;
    in_v6 = look_in("/proc/net/tcp6", 1, &from, &to, uid);
    return in_v6 == PEER_UNKNOWN ? place : in_v6;
}
