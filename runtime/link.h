/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - a channel of bytes to one peer.
 *
 * A link never blocks: it takes or gives what it can now.  What the bytes mean
 * is message.h's business.  A new kind is one file and one row in builtins.c. */
#ifndef RUNTIME_LINK_H
#define RUNTIME_LINK_H

#include <sys/types.h>
#include <sys/uio.h>

#include "runtime/error.h"

struct mesh;
struct link;

struct link_ops {
    const char *name; /* for CT_LINK and messages */
    int (*can_reach)(const struct mesh *mesh, int peer);
    /* A link that is open, or opens while it is written to. */
    ct_status (*open)(struct mesh *mesh, int peer, struct link **link);
    /* Bytes taken, at least one; 0: full for now; -1: broken, link->why says how.  Of no parts: it
     * goes on connecting. */
    ssize_t (*write)(struct link *link, const struct iovec *parts, int count);
    /* Bytes given; 0: none for now; -1: the peer closed it, or it broke: link->why. */
    ssize_t (*read)(struct link *link, void *data, size_t bytes);
    void (*close)(struct link *link);
};

struct link {
    const struct link_ops *ops;
    int fd;         /* for epoll; -1: rings the doorbell instead */
    size_t ahead;   /* bytes that it has taken from the peer already: epoll does not know of them */
    int accepted;   /* the peer opened it */
    int second;     /* opened beside another one */
    int connecting; /* it takes no bytes yet, and may never */
    int dry; /* the last read took all there was: until the next look it is not asked again */
    /* Not by ct_fail(): whoever waits for something else, or has failed already, sees it end. */
    char why[160];
};

extern const struct link_ops *const link_kinds[]; /* best first, NULL at the end; builtins.c */

/* The link over a connection that a peer opened (its hello is still to be read). */
struct link *link_tcp_accepted(int fd);

#endif
