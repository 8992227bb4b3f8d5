/* SPDX-License-Identifier: Apache-2.0 */
/* peer_uid.h - the uid of the other end of a TCP connection, if that end is on this host. */
#ifndef RUNTIME_NET_PEER_UID_H
#define RUNTIME_NET_PEER_UID_H

#include <sys/socket.h>
#include <sys/types.h>

enum peer_place {
    PEER_HERE,      /* in this network namespace; *uid is the owner */
    PEER_ELSEWHERE, /* on another host, or already closed */
    PEER_PENDING,   /* here, but no process has accepted the connection yet */
    PEER_UNKNOWN    /* the kernel does not say */
};

/* Opens the netlink socket for peer_uid(), which the caller closes; -1 if the system has none. */
int peer_uid_open(void);

/* Finds the uid of the other end.  `peer` and `self` are the two ends as getpeername() and
 * getsockname() return them. */
enum peer_place peer_uid(int netlink, const struct sockaddr_storage *peer,
                         const struct sockaddr_storage *self, uid_t *uid);

/* Like peer_uid(), but from /proc/net/tcp, which takes longer the more connections there are. */
enum peer_place peer_uid_proc(const struct sockaddr_storage *peer,
                              const struct sockaddr_storage *self, uid_t *uid);

#endif
