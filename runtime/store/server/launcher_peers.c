/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_peers.c - exchanges messages with the launchers on other hosts (agents), and queries
 * them about clients on their hosts. */
#include <event2/event.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/net/socket.h"
#include "runtime/store/server/connection.h"

struct store_agent {
    struct list_node all;
    struct conn *conn;
    void *note;                /* the coordinator's pointer */
    unsigned char address[16]; /* the agent's IPv6 address, or its mapped IPv4 address */
    unsigned char message[AGENT_MOST_BYTES];
    size_t have; /* bytes of the message that have come */
};

static void put_end(const struct sockaddr_storage *end, unsigned char out[18])
{
    const struct sockaddr_in *v4 = (const void *)end;
    const struct sockaddr_in6 *v6 = (const void *)end;

    memset(out, 0, 18);
    if (end->ss_family == AF_INET) {
        out[10] = out[11] = 0xff;
        memcpy(out + 12, &v4->sin_addr, 4);
        memcpy(out + 16, &v4->sin_port, 2);
    } else {
        memcpy(out, &v6->sin6_addr, 16);
        memcpy(out + 16, &v6->sin6_port, 2);
    }
}

static int ends_of(const struct conn *conn, unsigned char peer[18], unsigned char self[18])
{
    struct sockaddr_storage theirs = { 0 }, ours = { 0 };
    socklen_t theirs_size = sizeof theirs, ours_size = sizeof ours;

    if (getpeername(conn->fd, (struct sockaddr *)&theirs, &theirs_size) < 0
        || getsockname(conn->fd, (struct sockaddr *)&ours, &ours_size) < 0)
        return -1;
    put_end(&theirs, peer);
    put_end(&ours, self);
    return 0;
}

int agent_start(struct conn *conn)
{
    struct store_agent *agent = calloc(1, sizeof *agent);
    unsigned char peer[18], self[18];

    if (!agent || ends_of(conn, peer, self) < 0) {
        free(agent);
        return -1;
    }
    agent->conn = conn;
    memcpy(agent->address, peer, sizeof agent->address);
    list_append(&conn->server->agents, &agent->all);
    conn->agent = agent;
    socket_notice_silence(conn->fd);
    return 0;
}

void agent_free(struct conn *conn)
{
    struct store_server *s = conn->server;

    if (!conn->agent)
        return;
    list_unlink(&conn->agent->all);
    if (s->hooks)
        s->hooks->left(s->hooks_arg, conn->agent, conn->error);
    free(conn->agent);
    conn->agent = NULL;
}

void store_agent_send(struct store_agent *agent, int type, const void *data, size_t bytes)
{
    static const struct timeval at_once = { 0, 0 };
    const uint32_t size = (uint32_t)bytes + 1;
    const unsigned char kind = (unsigned char)type;

    /* A timer sends the message, since the caller may run outside of server_work(). */
    event_add(&agent->conn->server->later, &at_once);
    conn_send(agent->conn, &size, sizeof size);
    conn_send(agent->conn, &kind, 1);
    if (bytes > 0)
        conn_send(agent->conn, data, bytes);
}

/* Returns a message with its header; NULL if out of memory. */
static struct value *message_of(struct budget *budget, int type, const void *data, size_t bytes)
{
    const uint32_t size = (uint32_t)bytes + 1;
    struct value *message = value_create(budget, NULL, 0), *whole;

    whole = message ? value_reserve(message, 5 + bytes) : NULL;
    if (!whole) {
        value_release(message);
        return NULL;
    }
    memcpy(whole->data, &size, 4);
    whole->data[4] = (unsigned char)type;
    memcpy(whole->data + 5, data, bytes);
    whole->size = 5 + bytes;
    return whole;
}

void store_agent_send_shared(struct store_agent *agent, int type, const void *data, size_t bytes,
                             struct value **shared)
{
    static const struct timeval at_once = { 0, 0 };

    if (!*shared)
        *shared = message_of(agent->conn->out.budget, type, data, bytes);
    event_add(&agent->conn->server->later, &at_once);
    conn_send_value(agent->conn, *shared);
}

void store_agent_flush(struct store_agent *agent)
{
    struct conn *conn = agent->conn;

    /* The connection's next turn sends the rest, and handles an error. */
    if (conn->out.first && !conn->blocked && !conn->broken)
        send_queue_send(&conn->out, conn->channel, conn->fd);
}

void store_agent_end(struct store_agent *agent)
{
    static const struct timeval at_once = { 0, 0 };

    agent->conn->broken = 1;
    conn_run_later(agent->conn);
    event_add(&agent->conn->server->later, &at_once);
}

void store_agent_note(struct store_agent *agent, void *note)
{
    agent->note = note;
}

void *store_agent_noted(const struct store_agent *agent)
{
    return agent->note;
}

void store_server_on_agents(struct store_server *server, const struct store_agent_hooks *hooks,
                            void *arg)
{
    server->hooks = hooks;
    server->hooks_arg = arg;
}

int store_server_newcomers(const struct store_server *server)
{
    struct pollfd listener = { .fd = server->listener, .events = POLLIN };
    int count = server->unverified_count + (poll(&listener, 1, 0) > 0);

    for (const struct list_node *node = server->pending.next; node != &server->pending;
         node = node->next)
        count++;
    for (const struct list_node *node = server->agents.next; node != &server->agents;
         node = node->next)
        count += !((const struct store_agent *)node)->note; /* `all` is the first member */
    return count;
}

/* ---- Queries ---------------------------------------------------------------- */

int agents_query(struct conn *conn, uint32_t *query)
{
    struct store_server *s = conn->server;
    unsigned char text[AGENT_WHO_BYTES];
    int queried = 0;

    if (++s->last_query == 0)
        s->last_query = 1;
    *query = s->last_query;
    memcpy(text, query, 4);
    if (ends_of(conn, text + 4, text + 22) < 0)
        return 0;
    for (struct list_node *node = s->agents.next; node != &s->agents; node = node->next) {
        struct store_agent *agent = (struct store_agent *)node; /* `all` is the first member */

        if (memcmp(agent->address, text + 4, sizeof agent->address))
            continue;
        store_agent_send(agent, AGENT_WHO, text, sizeof text);
        queried++;
    }
    return queried;
}

/* Passes an agent's answer on to the pending connection that the query was about.  Ignores the
 * answer if that connection is closed by now or does not come from the agent's host. */
static void take_answer(struct store_agent *agent, const unsigned char *data)
{
    struct store_server *s = agent->conn->server;
    uint32_t query;

    memcpy(&query, data, sizeof query);
    for (struct list_node *node = s->unverified.next; query && node != &s->unverified;
         node = node->next) {
        struct conn *conn = (struct conn *)node; /* `all` is the first member */
        unsigned char peer[18], self[18];

        if (admission_query(conn) != query)
            continue;
        if (ends_of(conn, peer, self) == 0 && !memcmp(agent->address, peer, 16)
            && admission_answer(conn, data[4] == 1))
            conn_run_later(conn);
        return;
    }
}

/* ---- Messages --------------------------------------------------------------- */

static void peers_take_message(struct store_agent *agent, int type, const unsigned char *data,
                               size_t bytes)
{
    struct store_server *s = agent->conn->server;

    if (type == AGENT_OURS && bytes == 5)
        take_answer(agent, data);
    else if (type >= AGENT_FIRST && s->hooks)
        s->hooks->said(s->hooks_arg, agent, type, data, bytes);
}

int agent_feed(struct conn *conn, const unsigned char *data, size_t bytes)
{
    struct store_agent *agent = conn->agent;

    while (bytes > 0 && !conn->broken) { /* store_agent_end() sets broken */
        uint32_t size = 0;
        size_t wanted = 4, n;

        if (agent->have >= 4) {
            memcpy(&size, agent->message, 4);
            wanted += size;
        }
        n = wanted - agent->have < bytes ? wanted - agent->have : bytes;
        memcpy(agent->message + agent->have, data, n);
        agent->have += n;
        data += n;
        bytes -= n;
        if (agent->have < 4 || agent->have < wanted)
            continue;
        if (wanted == 4) {
            memcpy(&size, agent->message, 4);
            if (size == 0 || size > AGENT_MOST_BYTES - 4)
                return -1;
            continue;
        }
        agent->have = 0;
        peers_take_message(agent, agent->message[4], agent->message + 5, size - 1);
    }
    return 0;
}
