/* SPDX-License-Identifier: Apache-2.0 */
/* peer_uid.h - the uid of the other end of a TCP connection, if that end is on this host. */
#ifndef RUNTIME_PEER_UID_H
#define RUNTIME_PEER_UID_H

#include <sys/socket.h>
#include <sys/types.h>

enum peer_place {
    PEER_HERE,      /* in this network namespace; *uid is its owner */
    PEER_ELSEWHERE, /* on another host, or gone */
    PEER_PENDING,   /* here, and no process has accepted the connection yet */
    PEER_UNKNOWN    /* the kernel does not say */
};

/* The netlink socket for peer_uid(); -1 where there is none.  The caller closes it. */
int peer_uid_open(void);

/* peer and self: the two ends as getpeername() and getsockname() give them. */
enum peer_place peer_uid(int netlink, const struct sockaddr_storage *peer,
                         const struct sockaddr_storage *self, uid_t *uid);

/* The same from /proc/net/tcp: slower the more connections there are. */
enum peer_place peer_uid_proc(const struct sockaddr_storage *peer,
                              const struct sockaddr_storage *self, uid_t *uid);

#endif
