/* SPDX-License-Identifier: Apache-2.0 */
/* connect_retry.h - a connection to node 0 of a static job, which may not be up yet.
 *
 * Whom it waits for is said after 5 s and then every 30; what stays wrong, as a secret does, is not
 * tried again. */
#ifndef LAUNCHER_NODES_FIXED_CONNECT_RETRY_H
#define LAUNCHER_NODES_FIXED_CONNECT_RETRY_H

#include <event2/event_struct.h>

#include "launcher/nodes/store_host.h"

struct dial_hooks {
    void (*connected)(void *arg, int fd);        /* the secret is proved; fd is the hook's */
    void (*gave_up)(void *arg, const char *why); /* the sentence is said */
};

struct dial {
    struct event again;
    const struct rendezvous *meet;
    int timeout; /* seconds */
    int64_t since, speak;
    int pause_ms;
    const struct dial_hooks *hooks;
    void *arg;
};

void dial_setup(struct dial *dial, struct event_base *base, const struct rendezvous *meet,
                int timeout, const struct dial_hooks *hooks, void *arg);
void dial_start(struct dial *dial); /* the first attempt is the loop's next turn */
void dial_stop(struct dial *dial);  /* stopped already is fine */

#endif
