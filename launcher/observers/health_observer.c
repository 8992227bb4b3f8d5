/* SPDX-License-Identifier: Apache-2.0 */
/* health_observer.c - answers the health checks of Kubernetes and similar systems.
 *
 * With TORCHELASTIC_HEALTH_CHECK_PORT=N the observer listens on port N of all interfaces and
 * answers any GET or HEAD with 200 and the seconds since 1970.  ctrun answers from the event loop
 * that watches the workers, so an answer proves that the loop runs.  If the port can't be opened,
 * ctrun logs a warning and the job continues. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/job/job.h"
#include "launcher/observers/observers.h"
#include "launcher/util/http_server.h"
#include "runtime/net/socket.h"
#include "runtime/util/error.h"
#include "runtime/util/log.h"

static void health_answer(struct http_connection *connection, void *arg)
{
    char body[32];

    (void)arg;
    snprintf(body, sizeof body, "%lld\n", (long long)time(NULL));
    http_answer(connection, "200 OK", "text/plain", "", body, strlen(body));
}

static int health_job_began(void *state, struct job *job)
{
    const char *text = getenv("TORCHELASTIC_HEALTH_CHECK_PORT");
    char *end;
    long port;
    int listener;

    if (!text || !*text)
        return 0;
    port = strtol(text, &end, 10);
    if (*end || port < 1 || port > 65535)
        log_line(LOG_WARN,
                 "No health check server started: TORCHELASTIC_HEALTH_CHECK_PORT=%s is not a port",
                 text);
    else if (socket_listen(NULL, (int)port, &listener) != CT_OK)
        log_line(LOG_WARN, "No health check server started: %s", ct_last_error());
    else
        http_server_open(state, job->base, listener, health_answer, NULL);
    return 0;
}

static void health_close(void *state, const struct job_end *end)
{
    (void)end;
    http_server_close(state);
}

const struct job_observer health_observer = { .bytes = sizeof(struct http_server),
                                              .job_began = health_job_began,
                                              .close = health_close };
