/* SPDX-License-Identifier: Apache-2.0 */
/* wireup.h - makes and authenticates the connections between ranks.
 *
 * A separate thread accepts and connects.  So a rank answers even during a long computation, and
 * connections of strangers delay no call.  The mesh gets a connection after each end has proved
 * that it belongs to the mesh.  Before that, only the following is written on a connection:
 *
 *   rank that connects -> hello: magic, from, to, nonce
 *   rank that accepts  -> its nonce
 *   rank that connects -> proof "ct mesh connect"
 *   rank that accepts  -> proof "ct mesh accept"
 *
 * With a secret, a proof is HMAC-SHA256(secret, its name, the mesh's token, hello, nonce).  So an
 * attacker can't reuse an overheard hello or proof later, for another pair of ranks or in another
 * round.  Without a secret, the proof is the token, which only ranks with access to the same store
 * know.  If all ranks are on one host, a rank first asks the kernel for the user of the other end.
 *
 * With CT_ENCRYPT=1, the two ranks first set up a secure channel (TLS) on the connection.
 *
 * A connection that ends before the last proof is tried again, since the peer may have been out of
 * descriptors.  No frame is lost, since none was written on the connection. */
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
    struct secret secret;                  /* size 0 if there is no secret */
    int encrypts;                          /* true if connections encrypt, which needs a secret */
    int one_host; /* true if all ranks are on one host, so that the other end's user is checked */
};

/* A connection that was made, or the reason why it could not be made. */
struct arrival {
    int peer;
    int fd; /* the caller of wireup_take() owns it; -1 if there is no connection, see `why` */
    struct secure_channel *channel; /* owned like fd; NULL if the connection is not encrypted */
    int accepted;                   /* true if the peer opened the connection */
    char why[200];
};

struct wireup;

/* Starts the thread that makes connections.  Takes over `listener`, even if the function fails.  If
 * `threaded` is 0, starts no thread, and the caller must call wireup_turn(). */
ct_status wireup_start(const struct wireup_identity *identity, int listener, int threaded,
                       struct wireup **wireup);
/* Stops the thread and closes all connections that were not taken.  Ignores NULL. */
void wireup_stop(struct wireup *wireup);
/* Starts to connect and returns at once.  An arrival reports the result. */
ct_status wireup_connect(struct wireup *wireup, int peer, const char *address, int port);
/* Returns a descriptor that is readable when there is an arrival or when wireup_is_full(). */
int wireup_fd(const struct wireup *wireup);
/* Takes an arrival.  Returns 1, or 0 if there is no arrival. */
int wireup_take(struct wireup *wireup, struct arrival *arrival);
/* Returns 1 if this process has had no descriptor left for connections for NO_DESCRIPTOR_MS; then
 * writes the limit to `why`.  Else returns 0. */
int wireup_is_full(struct wireup *wireup, char *why, size_t size);
/* Does one turn of the thread's loop, and waits at most timeout_ms for an event. */
void wireup_turn(struct wireup *wireup, int timeout_ms);

/* Computes a proof.  `name` is "connect" or "accept". */
ct_status wireup_proof(const struct wireup_identity *identity, const char *name,
                       const struct hello *hello, const unsigned char nonce[NONCE_BYTES],
                       unsigned char proof[PROOF_BYTES]);

#endif
