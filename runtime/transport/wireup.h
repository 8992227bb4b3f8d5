/* SPDX-License-Identifier: Apache-2.0 */
/* wireup.h - how two ranks get a connection to each other.
 *
 * A thread of its own accepts and connects, so that a rank that computes for long still answers,
 * and connections of strangers delay no call.  The mesh gets a connection when both ends have
 * proved that they belong to it.  Before that, only this is written on it:
 *
 *   rank that connects -> hello: magic, from, to, nonce
 *   rank that accepts  -> its nonce
 *   rank that connects -> proof "ct mesh connect"
 *   rank that accepts  -> proof "ct mesh accept"
 *
 * With a secret a proof is HMAC-SHA256(secret, its name, the mesh's token, hello, nonce).  So a
 * hello that was overheard is of no use later, nor for another pair of ranks or another round.
 * Without a secret the proof is the token, which only ranks with access to the same store know;
 * where all ranks are on one host, the kernel is first asked for the user of the other end.
 *
 * With CT_ENCRYPT=1 a connection is a secure channel before all this.
 *
 * A connection that ends before the last proof is tried again: its peer may have been out of
 * descriptors.  Nothing is lost by that, since no frame was written on it. */
#ifndef RUNTIME_TRANSPORT_WIREUP_H
#define RUNTIME_TRANSPORT_WIREUP_H

#include "runtime/net/shared_secret.h"

#define HELLO_MAGIC 0x33746863u /* "cht3" */
#define MESH_TOKEN_BYTES 16

struct secure_channel;

struct hello {
    uint32_t magic;
    int32_t from, to; /* ranks in the mesh */
    unsigned char nonce[NONCE_BYTES];
};

struct wireup_identity {
    int rank, size;
    unsigned char token[MESH_TOKEN_BYTES]; /* made by rank 0 for this mesh */
    struct secret secret;                  /* size 0: there is no secret */
    int encrypts;                          /* which needs a secret */
    int one_host; /* all ranks are on one host: the kernel is asked for the user of the other end */
};

/* A connection that was made, or the reason why there will be none. */
struct arrival {
    int peer;
    int fd; /* owned by the caller of wireup_take(); -1: `why` says why there is none */
    struct secure_channel *channel; /* so is this; NULL: it is not encrypted */
    int accepted;                   /* the peer opened it */
    char why[200];
};

struct wireup;

/* Owns `listener` from now on, even if it fails.  threaded 0: the caller calls wireup_turn(). */
ct_status wireup_start(const struct wireup_identity *identity, int listener, int threaded,
                       struct wireup **wireup);
/* NULL is fine; connections that were not taken are closed */
void wireup_stop(struct wireup *wireup);
/* Begins to connect.  An arrival reports how that ended.  It never waits. */
ct_status wireup_connect(struct wireup *wireup, int peer, const char *address, int port);
/* Readable when there is an arrival to take, or wireup_is_full(). */
int wireup_fd(const struct wireup *wireup);
int wireup_take(struct wireup *wireup, struct arrival *arrival); /* 0: there is none */
/* 1: no descriptor has been left for connections for a while; `why` names the limit. */
int wireup_is_full(struct wireup *wireup, char *why, size_t size);
/* Does one turn of the thread's loop; waits at most so long for an event. */
void wireup_turn(struct wireup *wireup, int timeout_ms);

/* name: "connect" or "accept". */
ct_status wireup_proof(const struct wireup_identity *identity, const char *name,
                       const struct hello *hello, const unsigned char nonce[NONCE_BYTES],
                       unsigned char proof[PROOF_BYTES]);

#endif
