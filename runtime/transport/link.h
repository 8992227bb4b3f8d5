/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - the interface of a link, a byte stream to one peer.
 *
 * A link never blocks; a write takes and a read returns as many bytes as possible now.  endpoint.c
 * divides the bytes into frames.  A new kind of link needs one file and one row in registry.c.  If
 * wireup.c makes its connections, the new kind also needs a case in endpoint.c, which turns all
 * connections of wireup.c into TCP links. */
#ifndef RUNTIME_TRANSPORT_LINK_H
#define RUNTIME_TRANSPORT_LINK_H

#include <sys/types.h>
#include <sys/uio.h>

#include "runtime/util/error.h"

struct mesh;
struct link;
struct secure_channel; /* runtime/net/secure_channel.h */

/* Bytes of the largest eager message.  For larger messages, RTS and CTS cost less than the second
 * copy of a message that comes before its receive.  RTS and CTS cost a switch between two processes
 * in shared memory, and a round trip over sockets. */
#define EAGER_MOST (256u << 10)

/* A link that knows how much room it has takes a frame of up to so many bytes, with the header,
 * whole or not at all.  So a send of such a message can be cancelled until it is done. */
#define WHOLE_FRAME ((size_t)33 << 10)

struct link_ops {
    const char *name; /* the kind's name in CT_LINK and in error messages */
    /* True if the link encrypts.  Encryption may be slower than the network, so that the socket is
     * never full; flush_to() therefore stops after one large write. */
    int encrypts;
    int device_rendezvous; /* true if the peer can map this rank's device memory (same host) */
    int (*can_reach)(const struct mesh *mesh, int peer);
    /* Opens a link.  Sets *link to NULL if wireup.c is making the connection, which then comes as
     * an arrival (wireup.h). */
    ct_status (*open)(struct mesh *mesh, int peer, struct link **link);
    /* Returns the number of bytes taken; 0 if the link is full now; -1 if the link broke, with the
     * reason in link->why. */
    ssize_t (*write)(struct link *link, const struct iovec *parts, int count);
    /* Returns 1 if the link can take so many bytes now.  NULL for a socket, which does not know. */
    int (*has_room)(struct link *link, size_t bytes);
    /* Returns the number of bytes read; 0 if there are no bytes now; -1 if the peer closed the link
     * or the link broke, with the reason in link->why. */
    ssize_t (*read)(struct link *link, void *data, size_t bytes);
    void (*close)(struct link *link);
};

struct link {
    const struct link_ops *ops;
    int fd;       /* descriptor for epoll; -1 if the link rings the peer's doorbell instead */
    size_t ahead; /* bytes in the link's buffer; epoll reports only bytes in the socket */
    int accepted; /* true if the peer opened the connection */
    int dry;      /* true if the socket is empty; read_stream() resets it before its first read */
    /* The reason why the link broke.  The reason is not put into ct_last_error(), since the thread
     * that notices it may wait for another peer or report an earlier failure. */
    char why[160];
};

extern const struct link_ops *const link_kinds[]; /* best first, ends with NULL; in registry.c */

#define LINK_HOST_IS_LOST "its host does not answer any more"

/* Returns a link over a connected socket, which the link then owns.  The link also owns `channel`,
 * which is NULL for an unencrypted connection.  Returns NULL if memory ran out; then the caller
 * keeps the socket and the channel. */
struct link *link_tcp_over(int fd, struct secure_channel *channel, int accepted);

#endif
