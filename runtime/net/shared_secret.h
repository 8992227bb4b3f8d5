/* SPDX-License-Identifier: Apache-2.0 */
/* shared_secret.h - the job's secret, and the proof that both ends of a connection know it.
 *
 * The secret comes from CT_STORE_SECRET or from the file that CT_STORE_SECRET_FILE names.  It never
 * comes from a command line, which every user of the host can read.
 *
 *     client -> hello: 8 bytes with which no PyTorch client begins, and the client's nonce
 *     server -> the server's nonce
 *     client -> HMAC-SHA256(secret, "ct store client" hello nonce)
 *     server -> HMAC-SHA256(secret, "ct store server" hello nonce)
 *
 * The client proves first, so a client without the secret gets nothing on which it could test
 * guesses.  The proof itself neither encrypts nor signs the bytes that follow.  With CT_ENCRYPT=1 a
 * secure channel does, which contains the proof and all that follows. */
#ifndef RUNTIME_NET_SHARED_SECRET_H
#define RUNTIME_NET_SHARED_SECRET_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/net/secure_channel.h"
#include "runtime/util/error.h"

#define SECRET_LEAST 16
#define HELLO_FIRST 0xC7u
#define NONCE_BYTES 32
#define HELLO_BYTES (8 + NONCE_BYTES)
#define PROOF_BYTES 32

struct secret {
    unsigned char bytes[256];
    size_t size; /* 0 without a secret */
};

/* Reads the secret from the file `path`.  If path is NULL, reads it from CT_STORE_SECRET, or else
 * from the file that CT_STORE_SECRET_FILE names.  Fails with CT_ERR_INVALID if the secret is
 * malformed or other users may read the file; the message names the variable or the file. */
ct_status secret_read(struct secret *secret, const char *path);
ct_status secret_make(struct secret *secret); /* 64 random hexadecimal digits */

/* ---- CT_ENCRYPT --------------------------------------------------------------- */

/* Returns CT_ERR_INVALID without a secret to encrypt with. */
ct_status encryption_check_secret(const struct secret *secret);
/* Sets *asked to 1 if CT_ENCRYPT is 1, else to 0.  Returns CT_ERR_INVALID if the variable is
 * neither 0 nor 1. */
ct_status encryption_asked(int *asked);
/* Sets *wanted to 1 if CT_ENCRYPT is 1, else to 0.  Returns CT_ERR_INVALID if the variable is
 * neither 0 nor 1, or if it is 1 and there is no secret to encrypt with. */
ct_status encryption_wanted(const struct secret *secret, int *wanted);
/* Creates the TLS context for a purpose, "store" or "mesh", each with its own key.  Returns
 * CT_ERR_INVALID without a secret. */
ct_status secret_context(const struct secret *secret, const char *purpose,
                         struct secure_context **context);
/* Puts a secure channel on a client's connection to the store at `where`.  Leaves *channel
 * unchanged if both ends are on this host, where the connection needs no encryption. */
ct_status encryption_connect(const struct secret *secret, int fd, const char *where,
                             int64_t deadline, struct secure_channel **channel);
/* The answer of a store that encrypts to a client that does not, whether the client began with a
 * hello or with PyTorch's first bytes. */
extern const unsigned char encryption_notice[NONCE_BYTES];
/* Returns CT_ERR_INVALID if an answer begins with encryption_notice. */
ct_status encryption_check_notice(const void *answer, size_t bytes, const char *where);

/* ---- The proof ---------------------------------------------------------------- */

/* The purpose of the connection. */
enum hello_role { HELLO_CLIENT = 'c', HELLO_AGENT = 'a' };

ct_status hello_make(unsigned char hello[HELLO_BYTES], enum hello_role role);
int hello_role(const unsigned char hello[HELLO_BYTES]); /* -1 if hello is invalid */

/* Computes a proof.  who: the prover, "client" or "server".  The first call loads libcrypto;
 * returns CT_ERR_UNSUPPORTED if libcrypto is missing. */
ct_status proof_make(const struct secret *secret, const char *who,
                     const unsigned char hello[HELLO_BYTES], const unsigned char nonce[NONCE_BYTES],
                     unsigned char proof[PROOF_BYTES]);
/* Computes HMAC-SHA256(secret, data).  The first call loads libcrypto, as in proof_make(). */
ct_status secret_hmac(const struct secret *secret, const void *data, size_t bytes,
                      unsigned char mac[PROOF_BYTES]);
int proof_equal(const unsigned char a[PROOF_BYTES], const unsigned char b[PROOF_BYTES]);

/* Does the client's side of the proof on a connected socket, or on its channel if `channel` is not
 * NULL.  Returns CT_ERR_INVALID if the secrets differ. */
ct_status secret_prove(const struct secret *secret, struct secure_channel *channel, int fd,
                       enum hello_role role, const char *where, int64_t deadline);

#endif
