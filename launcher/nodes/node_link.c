/* SPDX-License-Identifier: Apache-2.0 */
/* node_link.c - sends and receives messages over a non-blocking socket, through a secure channel if
 * the job encrypts.  TCP keepalive detects within seconds that a host has vanished. */
#include "launcher/nodes/node_link.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/nodes/node_messages.h"
#include "runtime/net/secure_channel.h"
#include "runtime/net/socket.h"
#include "runtime/net/peer_uid.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"

#define READ_BYTES 16384

/* Connects to the store and proves that this node knows the secret.  Blocks until the deadline at
 * most.  Sets *error to the errno of a failed connect(); 0 if connect() succeeded. */
static ct_status connect_and_prove(const struct store_policy *policy, const char *host, int port,
                                   int64_t deadline, int *fd, struct secure_channel **channel,
                                   int *error)
{
    char where[300];
    ct_status status = socket_connect_once(host, port, deadline, fd);

    *error = status == CT_OK ? 0 : errno;
    if (status != CT_OK)
        return status;
    snprintf(where, sizeof where, "%.250s port %d", host, port);
    if (policy->encrypts)
        status = encryption_connect(&policy->secret, *fd, where, deadline, channel);
    if (status == CT_OK)
        status = secret_prove(&policy->secret, *channel, *fd, HELLO_AGENT, where, deadline);
    if (status != CT_OK) {
        secure_channel_destroy(*channel);
        close(*fd);
    }
    return status;
}

/* ---- Out -------------------------------------------------------------------- */

void node_link_send(struct node_link *link, int type, const void *data, size_t bytes)
{
    const uint32_t size = (uint32_t)bytes + 1;
    const unsigned char kind = (unsigned char)type;

    if (link->fd < 0)
        return;
    evbuffer_add(link->out, &size, sizeof size);
    evbuffer_add(link->out, &kind, 1);
    evbuffer_add(link->out, data, bytes);
    event_add(&link->writable, NULL);
}

void node_link_print(struct node_link *link, int type, const char *format, ...)
{
    char text[NODE_TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    node_link_send(link, type, text, strlen(text));
}

/* Sends as much as the socket takes now.  Returns -1 if the connection broke, else 0. */
static int node_link_write_out(struct node_link *link)
{
    while (evbuffer_get_length(link->out) > 0) {
        struct iovec all = { evbuffer_pullup(link->out, -1), evbuffer_get_length(link->out) };
        const ssize_t n =
            link->channel ? secure_channel_write(link->channel, &all, 1)
                          : send(link->fd, all.iov_base, all.iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        evbuffer_drain(link->out, (size_t)n);
    }
    return 0;
}

/* Ignores an error: the event loop will get the same error again and handle it. */
void node_link_flush(struct node_link *link)
{
    if (link->fd >= 0)
        node_link_write_out(link);
}

/* ---- In --------------------------------------------------------------------- */

static void get_end(const unsigned char in[18], struct sockaddr_storage *out)
{
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

    memcpy(&v6.sin6_addr, in, 16);
    memcpy(&v6.sin6_port, in + 16, 2);
    *out = (struct sockaddr_storage){ 0 };
    memcpy(out, &v6, sizeof v6);
}

static void answer_who(struct node_link *link, const unsigned char *data, size_t bytes)
{
    struct sockaddr_storage program, store;
    unsigned char answer[5];
    uid_t uid = 0;

    if (bytes != AGENT_WHO_BYTES)
        return;
    get_end(data + 4, &program);
    get_end(data + 22, &store);
    memcpy(answer, data, 4);
    answer[4] = peer_uid(link->netlink, &program, &store, &uid) == PEER_HERE && uid == geteuid();
    node_link_send(link, AGENT_OURS, answer, sizeof answer);
}

/* Closes the link and calls the hook broke().  `error` is the errno of the socket.  If it is 0,
 * `why` is the cause. */
static void broken(struct node_link *link, int error, const char *why)
{
    node_link_close(link);
    if (error)
        why =
            socket_error_is_silence(error) ? "its host does not answer any more" : strerror(error);
    link->hooks->broke(link->arg, error, why);
}

/* Handles one complete message. */
static void node_link_take_message(struct node_link *link, int type, const unsigned char *data,
                                   size_t bytes)
{
    char text[NODE_TEXT];

    if (type == AGENT_WHO) {
        answer_who(link, data, bytes);
    } else if (type == NODE_PUTS) {
        link->hooks->puts(link->arg, (const char *)data, bytes);
    } else {
        node_text(text, sizeof text, data, bytes);
        link->hooks->message(link->arg, type, text);
    }
}

/* Handles all complete messages in link->in.  A message's hook may close the link or start it again
 * with a new link->in. */
static void take_messages(struct node_link *link)
{
    struct evbuffer *const in = link->in;
    unsigned char message[4 + NODE_PIECE + 1];
    uint32_t size;

    while (link->fd >= 0 && link->in == in) {
        const ssize_t have = evbuffer_copyout(in, message, 5);
        uint32_t most;

        if (have < 5)
            return;
        memcpy(&size, message, 4);
        most = message[4] == NODE_PUTS ? NODE_PIECE + 1 : NODE_TEXT;
        if (size == 0 || size > most) {
            broken(link, 0, "it speaks another protocol; is it the same version of ctrun?");
            return;
        }
        if (evbuffer_get_length(in) < 4 + size)
            return;
        evbuffer_remove(in, message, 4 + size);
        node_link_take_message(link, message[4], message + 5, size - 1);
    }
}

static void node_link_on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct node_link *link = arg;
    struct evbuffer *const in = link->in;
    unsigned char data[READ_BYTES];
    ssize_t n;

    (void)what;
    n = link->channel ? secure_channel_read(link->channel, data, sizeof data)
                      : recv(fd, data, sizeof data, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        broken(link, n == 0 ? 0 : errno, "its ctrun ended");
        return;
    }
    evbuffer_add(in, data, (size_t)n);
    take_messages(link);
    if (link->fd >= 0 && link->in == in && link->channel
        && secure_channel_has_more(link->channel)) /* poll() sees only the socket */
        event_active(&link->readable, EV_READ, 0);
}

static void node_link_on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct node_link *link = arg;

    (void)fd;
    (void)what;
    if (node_link_write_out(link) < 0)
        broken(link, errno, "");
    else if (evbuffer_get_length(link->out) == 0)
        event_del(&link->writable);
}

void node_link_setup(struct node_link *link, const struct node_link_hooks *hooks, void *arg)
{
    *link = (struct node_link){ .fd = -1, .netlink = -1, .hooks = hooks, .arg = arg };
}

int node_link_start(struct node_link *link, struct event_base *base, int fd,
                    struct secure_channel *channel)
{
    node_link_close(link);
    socket_notice_silence(fd);
    evutil_make_socket_nonblocking(fd);
    link->in = evbuffer_new();
    link->out = evbuffer_new();
    event_assign(&link->readable, base, fd, EV_READ | EV_PERSIST, node_link_on_readable, link);
    event_assign(&link->writable, base, fd, EV_WRITE | EV_PERSIST, node_link_on_writable, link);
    link->fd = fd;
    link->channel = channel;
    if (!link->in || !link->out || event_add(&link->readable, NULL) < 0) {
        node_link_close(link);
        return -1;
    }
    link->netlink = peer_uid_open();
    if (channel && secure_channel_has_more(channel))
        event_active(&link->readable, EV_READ, 0);
    return 0;
}

void node_link_close(struct node_link *link)
{
    if (link->fd < 0)
        return;
    event_del(&link->readable);
    event_del(&link->writable);
    secure_channel_destroy(link->channel);
    close(link->fd);
    if (link->in)
        evbuffer_free(link->in);
    if (link->out)
        evbuffer_free(link->out);
    if (link->netlink >= 0)
        close(link->netlink);
    node_link_setup(link, link->hooks, link->arg);
}

/* ---- Connecting -------------------------------------------------------------- */

/* An attempt to connect blocks the event loop.  This does no harm, since no worker runs while this
 * node is not connected.  The pauses between attempts grow from 10 ms to a second. */

#define ATTEMPT_MS 2000 /* longest time, in ms, that an attempt blocks the event loop */

/* Number of refused proofs after which this node's secret counts as wrong.  A single proof may fail
 * because node 0 is just ending. */
#define REFUSALS 3
#define GONE_MS 2000 /* time, in ms, after which a node 0 that refuses connections has ended */

/* Returns 1 if an elastic job has ended: node 0 accepted a connection once and has refused all
 * connections for GONE_MS.  Node 0 sends NODE_OVER to all nodes that have joined, but can't send it
 * to a node that connects at the last moment.  `error` is connect()'s errno in the latest attempt;
 * 0 if connect() succeeded. */
static int has_ended(struct connect_retry *retry, int error)
{
    if (error == 0)
        retry->met = 1;
    if (error != ECONNREFUSED)
        retry->refused = 0;
    else if (retry->refused == 0)
        retry->refused = clock_ms();
    return retry->meet->is_elastic && retry->met && retry->refused
           && clock_ms() - retry->refused >= GONE_MS;
}

static const char *remedy(const struct job_rendezvous *meet)
{
    if (*meet->file)
        return "was it started, with the same file in --rdzv-endpoint?";
    return meet->is_elastic
               ? "was it started, and does --rdzv-endpoint name its host, or an address of it?"
               : "was it started, and does --master-addr name its host, or an address of it?";
}

/* Makes one attempt to connect.  Gives up if node 0 has refused the secret REFUSALS times or
 * libcrypto is missing.  After any other error, tries again until the timeout, since node 0 may
 * start later. */
static void try_to_connect(evutil_socket_t ignored, short what, void *arg)
{
    struct connect_retry *retry = arg;
    const int64_t waited = clock_ms() - retry->since;
    struct secure_channel *channel = NULL;
    struct timeval pause;
    int fd, error = ENOENT;
    ct_status status = job_rendezvous_look_up(retry->meet);

    (void)ignored;
    (void)what;
    if (status == CT_OK)
        status = connect_and_prove(&retry->meet->policy, retry->meet->address, retry->meet->port,
                                   deadline_after(ATTEMPT_MS), &fd, &channel, &error);
    if (status == CT_OK) {
        retry->hooks->connected(retry->arg, fd, channel);
        return;
    }
    if (has_ended(retry, error)) {
        log_line(LOG_ERROR, "the job at %s port %d ended before this node could take part",
                 retry->meet->address, retry->meet->port);
        retry->hooks->gave_up(retry->arg);
        return;
    }
    if ((status == CT_ERR_INVALID && ++retry->refusals == REFUSALS)
        || status == CT_ERR_UNSUPPORTED) {
        log_line(LOG_ERROR, "%s", ct_last_error());
        retry->hooks->gave_up(retry->arg);
        return;
    }
    if (waited >= retry->speak) {
        log_line(LOG_WARN, "waiting %d s for %s: %s; %s", (int)(waited / 1000), retry->meet->title,
                 ct_last_error(), remedy(retry->meet));
        retry->speak += NEXT_WORD_MS;
    }
    if (waited >= retry->timeout * INT64_C(1000)) {
        log_line(LOG_ERROR, "%s did not come within %d s (%s): %s", retry->meet->title,
                 retry->timeout, retry->limit, ct_last_error());
        retry->hooks->gave_up(retry->arg);
        return;
    }
    if (waited >= 1000)
        retry->hooks->waits(retry->arg, (int)(waited / 1000));
    pause = (struct timeval){ retry->pause_ms / 1000, retry->pause_ms % 1000 * 1000 };
    retry->pause_ms = retry->pause_ms < 500 ? 2 * retry->pause_ms : 1000;
    event_add(&retry->again, &pause);
}

void connect_retry_setup(struct connect_retry *retry, struct event_base *base,
                         struct job_rendezvous *meet, const struct connect_retry_hooks *hooks,
                         void *arg)
{
    *retry = (struct connect_retry){ .meet = meet, .hooks = hooks, .arg = arg };
    evtimer_assign(&retry->again, base, try_to_connect, retry);
}

void connect_retry_start(struct connect_retry *retry, int timeout, const char *limit)
{
    retry->timeout = timeout;
    retry->limit = limit;
    retry->since = clock_ms();
    retry->met = 0;
    retry->refusals = 0;
    retry->speak = FIRST_WORD_MS;
    retry->pause_ms = 10;
    event_active(&retry->again, EV_TIMEOUT, 0);
}

void connect_retry_stop(struct connect_retry *retry)
{
    event_del(&retry->again);
}
