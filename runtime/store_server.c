/* SPDX-License-Identifier: Apache-2.0 */
/* store_server.c - the store on sockets: libevent around store_table.c.
 *
 * accept -> read -> table_feed() -> replies into the client's output buffer ->
 * write.  A client that does not read its answers is not read any further
 * (OUTPUT_HIGH); one that does not show the magic in time is closed, since
 * PyTorch's client would wait for ever on a silent server; when descriptors run
 * out a spare one is given up to accept and close, so that the listener does
 * not spin.  No names are looked up. */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/log.h"
#include "runtime/socket.h"
#include "runtime/store.h"
#include "runtime/store_table.h"

#define OUTPUT_HIGH (4u << 20)
#define OUTPUT_LOW (1u << 20)
#define READ_BYTES (256 << 10)
#define HANDSHAKE_SECONDS 10

struct client {
    struct client *next, **link;
    struct store_server *server;
    struct table_client *table;
    struct event *readable, *writable;
    struct evbuffer *in, *out;
    int fd;
    int stalled; /* not read while it does not read */
};

struct store_server {
    struct event_base *base;
    struct event *acceptable;
    struct table *table;
    struct client *clients;
    int count;
    int listener, spare;
    int is_unix;
};

static void client_close(struct client *client, const char *why)
{
    if (why)
        log_line(LOG_WARN, "store: a client was closed: %s", why);
    *client->link = client->next;
    if (client->next)
        client->next->link = client->link;
    client->server->count--;
    table_client_destroy(client->table);
    if (client->readable)
        event_free(client->readable);
    if (client->writable)
        event_free(client->writable);
    if (client->in)
        evbuffer_free(client->in);
    if (client->out)
        evbuffer_free(client->out);
    close(client->fd);
    free(client);
}

/* ---- Out ------------------------------------------------------------------ */

/* May run while another client is fed, so it never closes: a broken pipe shows
 * when this client is written or read. */
static void take_reply(void *owner, const void *data, size_t bytes)
{
    struct client *client = owner;

    if (evbuffer_get_length(client->out) == 0)
        event_add(client->writable, NULL);
    evbuffer_add(client->out, data, bytes);
}

/* What goes out at once need not wait for the loop. */
static int write_now(struct client *client)
{
    while (evbuffer_get_length(client->out) > 0)
        if (evbuffer_write(client->out, client->fd) <= 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
    event_del(client->writable);
    return 0;
}

/* ---- In ------------------------------------------------------------------- */

/* Feeds what is there, a contiguous run at a time, while the answers are read. */
static int feed(struct client *client, const char **why)
{
    while (evbuffer_get_length(client->in) > 0) {
        const size_t run = evbuffer_get_contiguous_space(client->in);

        if (evbuffer_get_length(client->out) > OUTPUT_HIGH) {
            client->stalled = 1;
            event_del(client->readable);
            return 0;
        }
        if (table_feed(client->table, evbuffer_pullup(client->in, (ev_ssize_t)run), run, why) < 0)
            return -1;
        evbuffer_drain(client->in, run);
    }
    return 0;
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct client *client = arg;
    const char *why = NULL;

    (void)fd;
    (void)what;
    if (write_now(client) < 0) {
        client_close(client, NULL);
        return;
    }
    if (client->stalled && evbuffer_get_length(client->out) < OUTPUT_LOW) {
        client->stalled = 0;
        event_add(client->readable, NULL);
        if (feed(client, &why) < 0)
            client_close(client, why);
    }
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct client *client = arg;
    const char *why = NULL;
    const int was_valid = table_client_is_valid(client->table);
    int n;

    if (what & EV_TIMEOUT) {
        client_close(client, "it did not say what it is in time");
        return;
    }
    n = evbuffer_read(client->in, fd, READ_BYTES);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            client_close(client, NULL);
        return;
    }
    if (feed(client, &why) < 0) {
        write_now(client); /* answers to what came before are due */
        client_close(client, why);
        return;
    }
    if (!was_valid && table_client_is_valid(client->table))
        event_remove_timer(client->readable); /* from here on it may be silent for days */
    if (write_now(client) < 0)
        client_close(client, NULL);
}

/* ---- Accepting ------------------------------------------------------------ */

static int client_start(struct client *client)
{
    const struct timeval patience = { HANDSHAKE_SECONDS, 0 };
    struct store_server *s = client->server;

    client->in = evbuffer_new();
    client->out = evbuffer_new();
    client->table = table_client_create(s->table, take_reply, client);
    client->readable = event_new(s->base, client->fd, EV_READ | EV_PERSIST, on_readable, client);
    client->writable = event_new(s->base, client->fd, EV_WRITE | EV_PERSIST, on_writable, client);
    if (!client->in || !client->out || !client->table || !client->readable || !client->writable)
        return -1;
    return event_add(client->readable, &patience);
}

static void client_create(struct store_server *s, int fd)
{
    struct client *client = calloc(1, sizeof *client);

    if (!client) {
        close(fd);
        return;
    }
    client->server = s;
    client->fd = fd;
    client->next = s->clients;
    client->link = &s->clients;
    if (s->clients)
        s->clients->link = &client->next;
    s->clients = client;
    s->count++;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (client_start(client) < 0)
        client_close(client, "there is no memory for it");
}

/* No descriptor is left: take the connection with the spare one and close it, or
 * the listener would stay readable and the loop would spin. */
static void refuse_one(struct store_server *s)
{
    int fd;

    close(s->spare);
    fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    log_line(LOG_ERROR, "store: a client was refused: no file descriptor is left (ulimit -n)");
}

static void on_acceptable(evutil_socket_t listener, short what, void *arg)
{
    struct store_server *s = arg;
    uid_t uid;
    int fd;

    (void)what;
    (void)listener;
    while (socket_accept(s->listener, 0, &fd) == CT_OK) {
        if (s->is_unix && (socket_peer(fd, NULL, &uid) != CT_OK || uid != geteuid())) {
            log_line(LOG_WARN, "store: a client of another user was refused");
            close(fd);
            continue;
        }
        client_create(s, fd);
    }
    if (errno == EMFILE || errno == ENFILE)
        refuse_one(s);
}

/* ---- Life ----------------------------------------------------------------- */

ct_status store_server_create(struct event_base *base, int listen_fd, struct store_server **server)
{
    struct store_server *s = calloc(1, sizeof *s);
    struct sockaddr_storage address = { 0 };
    socklen_t length = sizeof address;

    if (!s) {
        close(listen_fd);
        return ct_fail(CT_ERR_NOMEM, "no memory for the store");
    }
    s->base = base;
    s->listener = listen_fd;
    s->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    fcntl(listen_fd, F_SETFL, fcntl(listen_fd, F_GETFL) | O_NONBLOCK);
    getsockname(listen_fd, (struct sockaddr *)&address, &length);
    s->is_unix = address.ss_family == AF_UNIX;
    s->table = table_create();
    s->acceptable = event_new(base, listen_fd, EV_READ | EV_PERSIST, on_acceptable, s);
    if (!s->table || !s->acceptable || event_add(s->acceptable, NULL) < 0) {
        store_server_destroy(s);
        return ct_fail(CT_ERR_NOMEM, "no memory for the store");
    }
    *server = s;
    return CT_OK;
}

void store_server_clear(struct store_server *server)
{
    table_clear(server->table);
}

int store_server_clients(const struct store_server *server)
{
    return server->count;
}

int store_server_has(const struct store_server *server, const char *wire_key)
{
    return table_has(server->table, wire_key);
}

void store_server_destroy(struct store_server *server)
{
    if (!server)
        return;
    while (server->clients)
        client_close(server->clients, NULL);
    if (server->acceptable)
        event_free(server->acceptable);
    table_destroy(server->table);
    close(server->listener);
    if (server->spare >= 0)
        close(server->spare);
    free(server);
}
