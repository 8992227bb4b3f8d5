/* SPDX-License-Identifier: Apache-2.0 */
/* peer.h - requests as bytes, and a blocking connection to a server on which they are sent.
 *
 * Every call gives up at the deadline with ETIMEDOUT; a close by the server is EPIPE. */
#ifndef STORE_BENCH_PEER_H
#define STORE_BENCH_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "bench/store_bench/servers.h"

/* ---- Requests ------------------------------------------------------------------------ */

enum command {
    VALIDATE,
    SET,
    COMPARE_SET,
    GET,
    ADD,
    CHECK,
    WAIT,
    DELETE_KEY = 8,
    MULTI_GET = 10,
    MULTI_SET,
    PING = 13,
    LIST_KEYS = 17,
};

#define MAGIC 0x3C85F7CEu
#define VALUE_BYTES 64

struct buffer {
    unsigned char *data;
    size_t size, room;
};

void put(struct buffer *b, const void *data, size_t bytes);
void put_u8(struct buffer *b, unsigned char value);
void put_u64(struct buffer *b, uint64_t value);
void put_blob(struct buffer *b, const void *data, size_t bytes);
void put_text(struct buffer *b, const char *text);
void put_ping(struct buffer *b);
void put_validate(struct buffer *b);

/* A command and its key: all of GET; the beginning of SET, ADD, COMPARE_SET. */
void put_key(struct buffer *b, enum command command, const char *key);

/* CHECK and WAIT of one key. */
void put_one(struct buffer *b, enum command command, const char *key);

/* n keys from first on; MULTI_SET has a value behind each. */
void put_many(struct buffer *b, enum command command, int tag, int first, int n);

/* The i-th key behind a prefix of that length: its own length. */
size_t number_key(char *key, size_t prefix, int i);

/* The number a case's keys begin with: no other case's do. */
int new_tag(void);

/* ---- The connection ------------------------------------------------------------------ */

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

/* ---- Keys by the thousand ------------------------------------------------------------ */

/* n keys in small messages, which every server takes. */
void set_all(const struct server *server, int tag, int n);
void delete_all(const struct server *server, int tag, int n);

#endif
