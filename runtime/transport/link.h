/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - a channel of bytes to one peer.
 *
 * A link never blocks: it takes or returns what it can now.  endpoint.c makes frames of the
 * bytes.  A new kind of link is one file and one row in registry.c; one whose connections
 * wireup makes also needs a case in endpoint.c, which makes TCP links of them. */
#ifndef RUNTIME_TRANSPORT_LINK_H
#define RUNTIME_TRANSPORT_LINK_H

#include <sys/types.h>
#include <sys/uio.h>

#include "runtime/util/error.h"

struct mesh;
struct link;
struct secure_channel; /* runtime/net/secure_channel.h */

/* The largest eager message of each kind of link.  Above, RTS and CTS cost less than the second
 * copy of a message that comes before its receive: in shared memory they are a switch between two
 * processes, over sockets a round trip.  The ring of up to 16 ranks holds EAGER_IN_MEMORY. */
#define EAGER_IN_MEMORY (128u << 10)
#define EAGER_OVER_SOCKETS (256u << 10) /* the largest of all */

struct link_ops {
    const char *name; /* for CT_LINK and messages */
    size_t eager_bytes;
    int encrypts;          /* so the socket may never be full: a flush does one large write */
    int device_rendezvous; /* the peer is on this host, so it can map device memory of this rank */
    int (*can_reach)(const struct mesh *mesh, int peer);
    /* Opens a link.  *link NULL: a connection is being made, and comes as an arrival (wireup.h). */
    ct_status (*open)(struct mesh *mesh, int peer, struct link **link);
    /* Returns the bytes taken, at least one; 0: full for now; -1: broken, link->why says how. */
    ssize_t (*write)(struct link *link, const struct iovec *parts, int count);
    /* Returns the bytes read; 0: none for now; -1: the peer closed it, or it broke: link->why. */
    ssize_t (*read)(struct link *link, void *data, size_t bytes);
    void (*close)(struct link *link);
};

struct link {
    const struct link_ops *ops;
    int fd;       /* for epoll; -1: rings the doorbell instead */
    size_t ahead; /* bytes that it has read from the socket already: epoll does not report them */
    int accepted; /* the peer opened it */
    int dry;      /* the last read emptied the socket: it is not read again before the next look */
    /* Why it broke.  Not in ct_last_error(): the thread that notices it may wait for another
     * peer, or report an earlier failure. */
    char why[160];
};

extern const struct link_ops *const link_kinds[]; /* best first, NULL at the end; registry.c */

#define LINK_HOST_IS_LOST "its host does not answer any more"

/* A link over a connection that was made, and its channel, which may be NULL.  NULL: no memory, and
 * both stay open. */
struct link *link_tcp_over(int fd, struct secure_channel *channel, int accepted);

#endif
