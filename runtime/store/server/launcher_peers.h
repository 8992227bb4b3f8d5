/* SPDX-License-Identifier: Apache-2.0 */
/* launcher_peers.h - agents: launchers on other hosts that are connected to the store's server.
 *
 * The server queries an agent whether a client on its host belongs to the same user.  The agent and
 * the coordinator, which owns the server, send each other messages of types from AGENT_FIRST up. */
#ifndef RUNTIME_STORE_SERVER_LAUNCHER_PEERS_H
#define RUNTIME_STORE_SERVER_LAUNCHER_PEERS_H

#include <stddef.h>

struct store_server;

/* Valid until the hook left() returns. */
struct store_agent;
struct store_agent_hooks {
    void (*said)(void *arg, struct store_agent *agent, int type, const void *data, size_t bytes);
    /* error: errno of the socket; 0: one side closed it. */
    void (*left)(void *arg, struct store_agent *agent, int error);
};
void store_server_on_agents(struct store_server *server, const struct store_agent_hooks *hooks,
                            void *arg);
void store_agent_send(struct store_agent *agent, int type, const void *data, size_t bytes);
/* Sends one copy of a message to several agents.  *shared is NULL for the first agent; the caller
 * releases it after the last one. */
struct value;
void store_agent_send_shared(struct store_agent *agent, int type, const void *data, size_t bytes,
                             struct value **shared);
/* Sends now as much as the socket takes.  For a caller that is about to block. */
void store_agent_flush(struct store_agent *agent);
/* Closes the connection at its next turn; left() follows. */
void store_agent_end(struct store_agent *agent);
/* Keeps a pointer for the coordinator, which is NULL at first. */
void store_agent_note(struct store_agent *agent, void *note);
void *store_agent_noted(const struct store_agent *agent);

/* A message is a u32 size of the rest, a u8 type and data; little-endian.  With AGENT_WHO the
 * server asks an agent about the program at the other end of a connection: u32 query, then the
 * program's address and the server's, each 16 bytes (IPv4 mapped) and a u16 port in network order.
 * With AGENT_OURS the agent answers: u32 query, u8: 1 if the program belongs to its user. */
enum { AGENT_WHO = 1, AGENT_OURS = 2, AGENT_FIRST = 16 };
#define AGENT_WHO_BYTES (4 + 2 * 18)
#define AGENT_MOST_BYTES (64 << 10)

#endif
