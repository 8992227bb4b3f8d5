/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_http.c - what a client sends to the status page, in pieces of any size, and then it leaves.
 * Steps: a byte for the size of the piece, the piece. */
#include <stdio.h>

#include "launcher/util/http_server.c"
#include "tests/fuzz/input.h"

static void is_in_head(const struct http_connection *client, const char *text)
{
    holds(!text || (text >= client->head && text + strlen(text) < client->head + HTTP_HEAD));
}

static void on_request(struct http_connection *client, void *arg)
{
    ++*(int *)arg;
    holds(client->state == HTTP_WAITS && client->path && *client->path == '/');
    is_in_head(client, client->path);
    is_in_head(client, client->query);
    is_in_head(client, client->host);
    is_in_head(client, client->authorization);
    if (client->query)
        http_stream(client, "text/event-stream");
    else
        http_answer(client, "200 OK", "text/plain", "", "yes\n", 4);
}

static void turn(struct event_base *base)
{
    for (int i = 0; i < 4; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct event_base *base;
    struct fuzz_input in = { data, size };
    char reply[1000];
    int asked = 0, ends[2];
    struct http_server server = { .on_request = on_request, .arg = &asked, .most = 1 };
    ssize_t got;

    if (!base)
        base = event_base_new();
    server.base = base;
    holds(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    http_add(&server, ends[0]);
    while (in.left > 0) {
        size_t bytes = 1 + take(&in);

        bytes = bytes < in.left ? bytes : in.left;
        if (send(ends[1], in.data, bytes, MSG_NOSIGNAL) < 0)
            break;
        in.data += bytes;
        in.left -= bytes;
        turn(base);
    }
    got = recv(ends[1], reply, sizeof reply, 0);
    holds(got > 0 ? got > 12 && !memcmp(reply, "HTTP/1.1 ", 9) : asked == 0);
    holds(asked <= 1);
    close(ends[1]);
    turn(base);
    holds(server.connections == 0);
    return 0;
}
