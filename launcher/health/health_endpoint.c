/* SPDX-License-Identifier: Apache-2.0 */
/* health_endpoint.c - HTTP as far as a probe needs it.
 *
 * Any GET or HEAD is answered with 200 and the seconds since 1970: the loop that answers is the
 * one that watches the workers, so an answer is the proof.  A client has five seconds and a
 * kilobyte; more than sixteen at a time are closed at once. */
#include "launcher/health/health_endpoint.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/net/socket.h"
#include "runtime/util/error.h"
#include "runtime/util/log.h"

static void drop(struct health_client *client)
{
    event_del(&client->event);
    close(client->fd);
    client->fd = -1;
}

/* It is small enough for any socket's buffer. */
static void answer(struct health_client *client)
{
    const int head = !strncmp(client->request, "HEAD ", 5);
    const int known = head || !strncmp(client->request, "GET ", 4);
    char body[64], reply[256];
    int size;

    snprintf(body, sizeof body, known ? "%lld\n" : "GET or HEAD\n", (long long)time(NULL));
    size = snprintf(reply, sizeof reply,
                    "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                    "Connection: close\r\n\r\n%s",
                    known ? "200 OK" : "405 Method Not Allowed", strlen(body), head ? "" : body);
    send(client->fd, reply, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(client->fd, SHUT_WR);
}

static void on_client(evutil_socket_t fd, short what, void *arg)
{
    struct health_client *client = arg;
    const size_t room = sizeof client->request - 1 - client->used;
    const ssize_t got =
        what & EV_READ ? recv(fd, client->request + client->used, room, MSG_DONTWAIT) : 0;

    if (got <= 0 || room == 0) { /* late, gone, or too long */
        drop(client);
        return;
    }
    client->used += (size_t)got;
    client->request[client->used] = '\0';
    if (!strstr(client->request, "\r\n\r\n") && !strstr(client->request, "\n\n"))
        return;
    answer(client);
    drop(client);
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
    struct health *health = arg;
    const struct timeval patience = { 5, 0 };
    const int new = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)what;
    for (int i = 0; i < HEALTH_CLIENTS && new >= 0; i++) {
        struct health_client *client = &health->clients[i];

        if (client->fd >= 0)
            continue;
        *client = (struct health_client){ .fd = new };
        event_assign(&client->event, event_get_base(&health->accept), new, EV_READ | EV_PERSIST,
                     on_client, client);
        event_add(&client->event, &patience);
        return;
    }
    if (new >= 0)
        close(new);
}

void health_open(struct health *health, struct event_base *base)
{
    const char *text = getenv("TORCHELASTIC_HEALTH_CHECK_PORT");
    char *end;
    long port;

    health->listener = -1;
    for (int i = 0; i < HEALTH_CLIENTS; i++)
        health->clients[i].fd = -1;
    if (!text || !*text)
        return;
    port = strtol(text, &end, 10);
    if (*end || port < 1 || port > 65535)
        log_line(LOG_WARN,
                 "No health check server started: TORCHELASTIC_HEALTH_CHECK_PORT=%s is "
                 "no port",
                 text);
    else if (socket_listen(NULL, (int)port, &health->listener) != CT_OK)
        log_line(LOG_WARN, "No health check server started: %s", ct_last_error());
    else {
        event_assign(&health->accept, base, health->listener, EV_READ | EV_PERSIST, on_accept,
                     health);
        event_add(&health->accept, NULL);
    }
}

void health_close(struct health *health)
{
    if (health->listener < 0)
        return;
    for (int i = 0; i < HEALTH_CLIENTS; i++)
        if (health->clients[i].fd >= 0)
            drop(&health->clients[i]);
    event_del(&health->accept);
    close(health->listener);
    health->listener = -1;
}
