/* SPDX-License-Identifier: Apache-2.0 */
/* connect_retry.h - a connection to node 0, which may not be up yet.
 *
 * That it waits is said after 5 s and then every 30; what stays wrong, as a secret does, is not
 * tried again. */
#ifndef LAUNCHER_NODES_CONNECT_RETRY_H
#define LAUNCHER_NODES_CONNECT_RETRY_H

#include <event2/event_struct.h>

#include "launcher/nodes/store_host.h"

struct connect_retry_hooks {
    void (*connected)(void *arg, int fd);        /* the secret is proved; fd is the hook's */
    void (*gave_up)(void *arg, const char *why); /* the sentence is said */
};

struct connect_retry {
    struct event again;
    struct rendezvous *meet;
    int timeout;       /* seconds */
    const char *limit; /* the option that sets them */
    int64_t since, speak;
    int pause_ms;
    const struct connect_retry_hooks *hooks;
    void *arg;
};

void connect_retry_setup(struct connect_retry *retry, struct event_base *base,
                         struct rendezvous *meet, const struct connect_retry_hooks *hooks,
                         void *arg);
/* The first attempt is the loop's next turn, the last one after `timeout` seconds, which are set by
 * `limit`. */
void connect_retry_start(struct connect_retry *retry, int timeout, const char *limit);
void connect_retry_stop(struct connect_retry *retry); /* stopped already is fine */

#endif
