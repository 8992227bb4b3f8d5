/* SPDX-License-Identifier: Apache-2.0 */
/* health_endpoint.h - a page that says that ctrun's loop turns, for Kubernetes and the like. */
#ifndef LAUNCHER_HEALTH_HEALTH_ENDPOINT_H
#define LAUNCHER_HEALTH_HEALTH_ENDPOINT_H

#include "launcher/util/http_server.h"

/* With TORCHELASTIC_HEALTH_CHECK_PORT=N listens there, on all interfaces, until
 * http_server_close().  What can't be is only said: no job fails for it. */
void health_open(struct http_server *health, struct event_base *base);

#endif
