/* SPDX-License-Identifier: Apache-2.0 */
/* peer.h - a blocking connection to a server, and the operations on it.
 *
 * Every call gives up at the deadline with ETIMEDOUT; a close by the server is
 * EPIPE. */
#ifndef STORE_BENCH_PEER_H
#define STORE_BENCH_PEER_H

#include "bench/store_bench/servers.h"
#include "bench/store_bench/wire.h"

struct peer {
    int fd;
    double deadline;
};

/* A source address has 28,000 ports, and a closed connection keeps its for a
 * minute: each crowd comes from an address of its own. */
int take_source(int fd, const struct server *server, unsigned crowd);

/* Connects, from any address when the crowd is 0, and says nothing. */
int peer_dial(struct peer *peer, const struct server *server, unsigned crowd);

/* Connects as PyTorch: the magic in one send, PING in a second. */
int peer_open(struct peer *peer, const struct server *server);
void peer_close(struct peer *peer);

int send_all(struct peer *peer, const void *data, size_t bytes);
int receive(struct peer *peer, void *data, size_t bytes);

/* n blobs, or one of any size: read and dropped. */
int receive_blobs(struct peer *peer, int64_t n);
int receive_blob(struct peer *peer);

int ask(struct peer *peer, const struct buffer *request, void *answer, size_t bytes);

/* Frees the request. */
int ask_once(struct peer *peer, struct buffer *request, void *answer, size_t bytes);
int ping(struct peer *peer);

/* As latency and throughput do them.  The requests are written once; get has two
 * round trips, as PyTorch's. */
struct operation {
    const char *name;
    struct buffer request, second;
    size_t answer, second_answer;
};

enum { SET_PING, WAIT_GET, RAW_GET, ADD_ONE, CHECK_ONE, COMPARE, OPERATIONS };

void prepare(struct operation ops[OPERATIONS], int tag);
void forget(struct operation ops[OPERATIONS]);
int operate(struct peer *peer, const struct operation *op);

#endif
