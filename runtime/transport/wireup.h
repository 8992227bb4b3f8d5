/* SPDX-License-Identifier: Apache-2.0 */
/* wireup.h - how two ranks get a connection to each other.
 *
 * A thread of its own accepts and connects, so that a rank that computes for long still answers,
 * and a stranger costs no call anything.  The mesh is given a connection when both ends have proved
 * that they belong to it; nothing else is written on it before:
 *
 *   rank that connects -> hello: magic, from, to, nonce
 *   rank that accepts  -> its nonce
 *   rank that connects -> proof "ct mesh connect"
 *   rank that accepts  -> proof "ct mesh accept"
 *
 * With a secret a proof is HMAC-SHA256(secret, its name, the mesh's token, hello, nonce), so a
 * hello that was overheard is of no use later, nor for another pair or another round.  Without
 * one it is the token, which only ranks know that met at the same store; where all ranks are on one
 * host the kernel is first asked which user has the other end.
 *
 * A connection that ends before the last proof is tried again: its peer may have been out of
 * descriptors.  Nothing is lost by that, since nothing had been written. */
#ifndef RUNTIME_TRANSPORT_WIREUP_H
#define RUNTIME_TRANSPORT_WIREUP_H

#include "runtime/store/server/shared_secret.h"

#define HELLO_MAGIC 0x33746863u /* "cht3" */
#define MESH_TOKEN_BYTES 16

struct hello {
    uint32_t magic;
    int32_t from, to; /* ranks in the mesh */
    unsigned char nonce[NONCE_BYTES];
};

struct wireup_identity {
    int rank, size;
    unsigned char token[MESH_TOKEN_BYTES]; /* made by rank 0 for this mesh */
    struct secret secret;                  /* of size 0: there is none */
    int one_host; /* all ranks are on it: the kernel is asked for the other end's user */
};

/* A connection that is made, or the reason why there will be none. */
struct arrival {
    int peer;
    int fd;       /* the taker's; -1: `why` says why not */
    int accepted; /* the peer opened it */
    char why[160];
};

struct wireup;

/* Owns `listener` from now on, also if it fails.  threaded 0: the caller calls wireup_turn(). */
ct_status wireup_start(const struct wireup_identity *identity, int listener, int threaded,
                       struct wireup **wireup);
void wireup_stop(struct wireup *wireup); /* NULL is fine; what has not been taken is closed */
/* Begins to connect; an arrival tells how it ended.  Never waits. */
ct_status wireup_connect(struct wireup *wireup, int peer, const char *address, int port);
/* Readable when there is an arrival to take, or wireup_is_full(). */
int wireup_fd(const struct wireup *wireup);
int wireup_take(struct wireup *wireup, struct arrival *arrival); /* 0: there is none */
/* No descriptor has been left for connections for a while; `why` names the limit. */
int wireup_is_full(struct wireup *wireup, char *why, size_t size);
/* Does once what the thread does all the time, waiting at most so long for something to happen. */
void wireup_turn(struct wireup *wireup, int timeout_ms);

/* name: "connect" or "accept". */
ct_status wireup_proof(const struct wireup_identity *identity, const char *name,
                       const struct hello *hello, const unsigned char nonce[NONCE_BYTES],
                       unsigned char proof[PROOF_BYTES]);

#endif
