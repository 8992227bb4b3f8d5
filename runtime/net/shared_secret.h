/* SPDX-License-Identifier: Apache-2.0 */
/* shared_secret.h - the job's secret, and the proof that both ends of a connection know it.
 *
 * It comes from CT_STORE_SECRET or from the file that CT_STORE_SECRET_FILE names,
 * never from a command line, which every user of the host can read.
 *
 *   client -> hello: 8 bytes that no PyTorch client begins with, its nonce
 *   server -> its nonce
 *   client -> HMAC-SHA256(secret, "ct store client" hello nonce)
 *   server -> HMAC-SHA256(secret, "ct store server" hello nonce)
 *
 * The client proves first, so a client without the secret gets nothing to test guesses on.  The
 * bytes that follow are encrypted and signed where CT_ENCRYPT=1 put a secure channel around all
 * this, else they are neither. */
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
    size_t size; /* 0: there is none */
};

/* path NULL: from CT_STORE_SECRET, else from the file that CT_STORE_SECRET_FILE names.
 * CT_ERR_INVALID names the variable or the file.  Only our user may be able to read the file. */
ct_status secret_read(struct secret *secret, const char *path);
ct_status secret_make(struct secret *secret); /* 64 random hexadecimal digits */

/* ---- CT_ENCRYPT --------------------------------------------------------------- */

/* CT_ERR_INVALID: there is no secret to encrypt with. */
ct_status encryption_check_secret(const struct secret *secret);
/* *asked: CT_ENCRYPT is 1.  CT_ERR_INVALID: it is neither 0 nor 1. */
ct_status encryption_asked(int *asked);
/* *wanted: CT_ENCRYPT is 1.  CT_ERR_INVALID: it is neither 0 nor 1, or there is no secret to
 * encrypt with. */
ct_status encryption_wanted(const struct secret *secret, int *wanted);
/* purpose: "store" or "mesh", which have different keys.  CT_ERR_INVALID: there is no secret. */
ct_status secret_context(const struct secret *secret, const char *purpose,
                         struct secure_context **context);
/* Makes a client's connection to the store at `where` a channel.  *channel stays as it is if both
 * ends are on this host: what does not leave it needs no encryption. */
ct_status encryption_connect(const struct secret *secret, int fd, const char *where,
                             int64_t deadline, struct secure_channel **channel);
/* What a store that encrypts answers to the first bytes of a client that does not, be they a hello
 * or PyTorch's. */
extern const unsigned char encryption_notice[NONCE_BYTES];
/* CT_ERR_INVALID, if the first bytes of an answer are those of that notice. */
ct_status encryption_check_notice(const void *answer, size_t bytes, const char *where);

/* ---- The proof ---------------------------------------------------------------- */

/* What the connection is for. */
enum hello_role { HELLO_CLIENT = 'c', HELLO_AGENT = 'a' };

ct_status hello_make(unsigned char hello[HELLO_BYTES], enum hello_role role);
int hello_role(const unsigned char hello[HELLO_BYTES]); /* -1: not a hello */

/* who: the prover, "client" or "server".  Loads libcrypto at the first call; CT_ERR_UNSUPPORTED
 * where there is none. */
ct_status proof_make(const struct secret *secret, const char *who,
                     const unsigned char hello[HELLO_BYTES], const unsigned char nonce[NONCE_BYTES],
                     unsigned char proof[PROOF_BYTES]);
/* HMAC-SHA256(secret, data), loading libcrypto as above. */
ct_status secret_hmac(const struct secret *secret, const void *data, size_t bytes,
                      unsigned char mac[PROOF_BYTES]);
int proof_equal(const unsigned char a[PROOF_BYTES], const unsigned char b[PROOF_BYTES]);

/* The client's side of the proof, on a connected socket, or on its channel if that is not NULL.
 * CT_ERR_INVALID: the secrets differ. */
ct_status secret_prove(const struct secret *secret, struct secure_channel *channel, int fd,
                       enum hello_role role, const char *where, int64_t deadline);

#endif
