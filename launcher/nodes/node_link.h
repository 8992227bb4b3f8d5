/* SPDX-License-Identifier: Apache-2.0 */
/* node_link.h - a connection from this ctrun to the one that serves a store.
 *
 * Both say what they have to say in messages (runtime/store/server/launcher_peers.h).  The link
 * also answers for this host's programs: when one of them comes to the store without a secret, as
 * PyTorch's do, the other ctrun asks whose it is. */
#ifndef LAUNCHER_NODES_NODE_LINK_H
#define LAUNCHER_NODES_NODE_LINK_H

#include <stdint.h>

#include "runtime/store/server/launcher_peers.h"
#include "runtime/store/server/shared_secret.h"
#include "runtime/util/error.h"

struct bufferevent;
struct event_base;

#define LINK_TEXT 1024 /* of one message */

struct link_hooks {
    void (*said)(void *arg, int type, const char *text);
    void (*broke)(void *arg, const char *why); /* the link is closed already */
};

struct link_to {
    struct bufferevent *stream; /* NULL: not connected */
    int netlink;
    const struct link_hooks *hooks;
    void *arg;
};

/* Connects and proves that we know the secret; may wait until the deadline. */
ct_status link_connect(const struct secret *secret, const char *host, int port, int64_t deadline,
                       int *fd);

void link_setup(struct link_to *link, const struct link_hooks *hooks, void *arg);
/* Takes over fd.  -1: out of memory. */
int link_start(struct link_to *link, struct event_base *base, int fd);
void link_tell(struct link_to *link, int type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void link_send(struct link_to *link, int type, const void *data, size_t bytes);
size_t link_unsent(const struct link_to *link); /* bytes that wait for the socket */
/* What was told leaves now, as far as the socket takes it: the loop may be about to stand still. */
void link_flush(struct link_to *link);
void link_close(struct link_to *link); /* closed already is fine */

#endif
