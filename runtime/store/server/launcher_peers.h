/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_peers.h - the launchers on other hosts that are connected to the store's server.  Such a
 * launcher is called an agent.
 *
 * The server asks an agent whether a client on the agent's host belongs to the agent's user.  The
 * coordinator, which owns the server, and the agents send each other messages of the types from
 * AGENT_FIRST up. */
#ifndef RUNTIME_STORE_SERVER_LAUNCHER_PEERS_H
#define RUNTIME_STORE_SERVER_LAUNCHER_PEERS_H

#include <stddef.h>

struct store_server;

/* An agent is valid until the hook left() returns. */
struct store_agent;
struct store_agent_hooks {
    /* Called for each message from an agent. */
    void (*said)(void *arg, struct store_agent *agent, int type, const void *data, size_t bytes);
    /* Called when the connection ends.  error is the socket's errno; 0 if one side closed it. */
    void (*left)(void *arg, struct store_agent *agent, int error);
};
void store_server_on_agents(struct store_server *server, const struct store_agent_hooks *hooks,
                            void *arg);
void store_agent_send(struct store_agent *agent, int type, const void *data, size_t bytes);
/* Sends one copy of a message to several agents.  Called once for each agent.  *shared must be NULL
 * in the first call.  The caller releases *shared after the last call. */
struct value;
void store_agent_send_shared(struct store_agent *agent, int type, const void *data, size_t bytes,
                             struct value **shared);
/* Sends at once as much as the socket takes.  For a caller that will block the event loop. */
void store_agent_flush(struct store_agent *agent);
/* Makes the event loop close the connection and call left(). */
void store_agent_end(struct store_agent *agent);
/* Stores the coordinator's pointer `note` in the agent.  The pointer is NULL at first. */
void store_agent_note(struct store_agent *agent, void *note);
void *store_agent_noted(const struct store_agent *agent);

/* A message is, in little-endian, a u32 size of the rest, a u8 type and the data.
 *
 * With AGENT_WHO the server asks an agent about the client at the other end of a connection.  The
 * data is the u32 number of the query, the client's address and the server's address.  An address
 * has 16 bytes (an IPv4 address is mapped) and a u16 port in network order.
 *
 * With AGENT_OURS the agent answers.  The data is the u32 number of the query, and a u8 that is 1
 * if the client belongs to the agent's user. */
enum { AGENT_WHO = 1, AGENT_OURS = 2, AGENT_FIRST = 16 };
#define AGENT_WHO_BYTES (4 + 2 * 18)
#define AGENT_MOST_BYTES (64 << 10)

#endif
