/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - what stands behind ct_store_*: one table of operations per kind.
 * The public calls check their arguments once, in store.c, and forward; store_handle.c has what all
 * kinds share of their lives. */
#ifndef RUNTIME_STORE_H
#define RUNTIME_STORE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/subnet.h"
#include "runtime/store/server/shared_secret.h"
#include "runtime/util/error.h"

struct control;
struct event_base;
struct faults; /* fault_injection.h */

/* Bytes that somebody else owns. */
struct bytes {
    const void *data;
    size_t size;
};

/* Keys as the caller gave them, any bytes.  Values given out are malloc'ed, see
 * ct.h.  Each operation may be called from several threads. */
struct store_ops {
    const char *kind; /* "tcp", "file", "hash" */
    ct_status (*set)(ct_store *store, struct bytes key, struct bytes value);
    ct_status (*get)(ct_store *store, struct bytes key, int64_t deadline, void **value,
                     size_t *bytes);
    ct_status (*add)(ct_store *store, struct bytes key, int64_t delta, int64_t *result);
    ct_status (*wait)(ct_store *store, const struct bytes *keys, int count, int64_t deadline);
    ct_status (*check)(ct_store *store, const struct bytes *keys, int count, int *present);
    /* present[i]: is keys[i] there?  One round trip. */
    ct_status (*check_each)(ct_store *store, const struct bytes *keys, int count, char *present);
    ct_status (*compare_set)(ct_store *store, struct bytes key, struct bytes expected,
                             struct bytes desired, void **value, size_t *bytes);
    ct_status (*delete_key)(ct_store *store, struct bytes key, int *deleted);
    ct_status (*num_keys)(ct_store *store, int64_t *count);
    ct_status (*append)(ct_store *store, struct bytes key, struct bytes value);
    ct_status (*multi_get)(ct_store *store, const struct bytes *keys, int count, int64_t deadline,
                           void **values, size_t *sizes);
    ct_status (*multi_set)(ct_store *store, const struct bytes *keys, int count,
                           const struct bytes *values);
    ct_status (*queue_push)(ct_store *store, struct bytes key, struct bytes value);
    ct_status (*queue_pop)(ct_store *store, struct bytes key, int64_t deadline, void **value,
                           size_t *bytes);
    ct_status (*queue_len)(ct_store *store, struct bytes key, int64_t *length);
    ct_status (*list_keys)(ct_store *store, char ***keys, int *count);
    ct_status (*wait_workers)(ct_store *store, int world_size, int64_t deadline); /* or NULL */
    void (*close)(ct_store *store);
};

/* Each kind starts with this.  One that ct_store_prefix() made is only this. */
struct ct_store {
    const struct store_ops *ops; /* NULL in a prefix */
    int timeout_ms;              /* the default of the waiting calls; -1: for ever */
    _Atomic int others;          /* who holds it beside its owner: the last one to close it does */
    struct faults *faults;       /* of the default group, in its store; NULL: none */
    ct_store *base;              /* of a prefix; NULL: the store itself */
    pid_t maker;                 /* the process that made it, forks.h */
    char *prefix;                /* with its "/", no 0 behind */
    size_t prefix_size;
};

/* The same store once more; owed a ct_store_close() of its own. */
ct_store *store_hold(ct_store *store);
/* CT_ERR_INVALID in a child of the process that made it.  call: "set". */
ct_status store_check_process(const ct_store *store, const char *call);
/* Which of these keys are there: present[i], one round trip for all. */
ct_status store_check_each(ct_store *store, const char *const *keys, int count, char *present);
/* The one below all prefixes, which does the work. */
ct_store *store_bottom(ct_store *store);

/* A TCP or abstract unix (host "@name", port 0) client.  Where the kind of store
 * server matters (the address to reach peers from), store_client_fd() is its
 * socket; -1 for every other kind, through prefixes. */
ct_status store_client_connect(const char *host, int port, int64_t deadline, int timeout_ms,
                               ct_store **store);
/* The same with a secret that was given otherwise than by the environment. */
ct_status store_client_connect_with(const struct secret *secret, const char *host, int port,
                                    int64_t deadline, int timeout_ms, ct_store **store);
/* From here on a wait at this server ends with CT_ERR_PEER when ctrun tells of a death beyond the
 * first `known` of them; any: also of one that ended well, for all workers are waited for.
 * control stays the caller's; NULL: no more.  Nothing to do for another kind of store. */
void store_tells(ct_store *store, struct control *control, uint32_t known, int any);
/* The first `known` deaths were taken up otherwise, and end no wait any more. */
void store_knows(ct_store *store, uint32_t known);
/* CT_ERR_PEER if a wait would end so now: for who waits for the same ranks in another way. */
ct_status store_look(ct_store *store);
int store_client_fd(ct_store *store);
int store_client_socket(const ct_store *store); /* without looking through prefixes */

/* How much the clients of a server may make it hold, and who may be one.  Clients on
 * this host are let in by uid; those on other hosts with the secret, when a launcher
 * there that has the secret says that they are its user's, or from the networks. */
struct store_policy {
    size_t memory;  /* bytes of keys, values, requests and unread answers in all */
    size_t request; /* bytes of one request */
    int clients;
    struct secret secret;
    struct networks allow;
    int open; /* there is no secret, and other hosts are let in without */
};

#define STORE_POLICY_INIT                                                       \
    {                                                                           \
        .memory = (size_t)4 << 30, .request = (size_t)1 << 30, .clients = 65536 \
    }

/* The server on an event loop of the caller's (ctrun's own loop, or that of
 * store_host).  Takes over listen_fd, a TCP or unix listener; on a unix one only
 * clients of our uid are served.  Not thread-safe: called on the loop's thread. */
struct store_server;
ct_status store_server_create(struct event_base *base, int listen_fd,
                              const struct store_policy *policy, struct store_server **server);
/* The base's loop, until event_base_loopbreak(); server may be NULL. */
void store_server_run(struct store_server *server, struct event_base *base);
void store_server_clear(
    struct store_server *server); /* an empty table: nothing of an older round is left */
int store_server_clients(struct store_server *server); /* connected now; from any thread */
int store_server_has(const struct store_server *server, const char *wire_key); /* "/" + key */
/* Told of each connection as it comes; NULL: nobody is. */
void store_server_on_guest(struct store_server *server, void (*came)(void *arg), void *arg);
/* As a client's set; waiting clients are told. */
void store_server_put(struct store_server *server, const char *wire_key, const void *data,
                      size_t bytes);
void store_server_destroy(struct store_server *server); /* NULL is fine */

/* A launcher on another host, connected to the server.  It says which programs there are
 * its user's; and it and the server's owner send each other messages, of types from
 * AGENT_FIRST up.  An agent is valid until left() returns. */
struct store_agent;
struct store_agent_hooks {
    void (*said)(void *arg, struct store_agent *agent, int type, const void *data, size_t bytes);
    void (*left)(void *arg, struct store_agent *agent);
};
void store_server_on_agents(struct store_server *server, const struct store_agent_hooks *hooks,
                            void *arg);
void store_agent_send(struct store_agent *agent, int type, const void *data, size_t bytes);
/* What was sent leaves now, as far as the socket takes it: the loop may be about to stand still. */
void store_agent_flush(struct store_agent *agent);
/* Closes the connection, soon; left() follows. */
void store_agent_end(struct store_agent *agent);

/* A message: u32 size of what follows, u8 type, data; little-endian.  WHO asks about the
 * program at the other end of a connection: u32 question, then its address and the
 * server's, each 16 bytes (IPv4 mapped) and a u16 port in network order.  OURS answers:
 * u32 question, u8: 1, it belongs to our user. */
enum { AGENT_WHO = 1, AGENT_OURS = 2, AGENT_FIRST = 16 };
#define AGENT_WHO_BYTES (4 + 2 * 18)
#define AGENT_MOST_BYTES (64 << 10)

/* The server on a thread of its own, for a rank that hosts the store.  With a secret
 * in the environment other hosts need it; without one they are let in, as by PyTorch. */
struct store_host;
ct_status store_host_start(int listen_fd, struct store_host **host);
int store_host_clients(struct store_host *host);
void store_host_stop(struct store_host *host); /* NULL is fine */

#endif
