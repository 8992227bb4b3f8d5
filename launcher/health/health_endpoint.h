/* SPDX-License-Identifier: Apache-2.0 */
/* health_endpoint.h - a page that says that ctrun's loop turns, for Kubernetes and the like. */
#ifndef LAUNCHER_HEALTH_HEALTH_ENDPOINT_H
#define LAUNCHER_HEALTH_HEALTH_ENDPOINT_H

#include <event2/event_struct.h>

enum { HEALTH_CLIENTS = 16 };

struct health_client {
    int fd; /* -1: free */
    struct event event;
    char request[1024];
    size_t used;
};

struct health {
    int listener; /* -1: none */
    struct event accept;
    struct health_client clients[HEALTH_CLIENTS];
};

/* With TORCHELASTIC_HEALTH_CHECK_PORT=N listens there, on all interfaces.  What can't be is only
 * said: no job fails for it. */
void health_open(struct health *health, struct event_base *base);
void health_close(struct health *health);

#endif
