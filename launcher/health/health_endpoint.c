/* SPDX-License-Identifier: Apache-2.0 */
/* health_endpoint.c - any GET or HEAD is answered with 200 and the seconds since 1970: the loop
 * that answers is the one that watches the workers, so an answer is the proof. */
#include "launcher/health/health_endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/net/socket.h"
#include "runtime/util/error.h"
#include "runtime/util/log.h"

static void health_endpoint_answer(struct http_connection *connection, void *arg)
{
    char body[32];

    (void)arg;
    snprintf(body, sizeof body, "%lld\n", (long long)time(NULL));
    http_answer(connection, "200 OK", "text/plain", "", body, strlen(body));
}

void health_open(struct http_server *health, struct event_base *base)
{
    const char *text = getenv("TORCHELASTIC_HEALTH_CHECK_PORT");
    char *end;
    long port;
    int listener;

    if (!text || !*text)
        return;
    port = strtol(text, &end, 10);
    if (*end || port < 1 || port > 65535)
        log_line(LOG_WARN,
                 "No health check server started: TORCHELASTIC_HEALTH_CHECK_PORT=%s is "
                 "no port",
                 text);
    else if (socket_listen(NULL, (int)port, &listener) != CT_OK)
        log_line(LOG_WARN, "No health check server started: %s", ct_last_error());
    else
        http_server_open(health, base, listener, health_endpoint_answer, NULL);
}
