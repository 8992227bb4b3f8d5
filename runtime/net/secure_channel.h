/* SPDX-License-Identifier: Apache-2.0 */
/* secure_channel.h - TLS 1.3 on a connected socket, with a key that both ends have.
 *
 * A context is a key and its purpose; a channel is one connection.  The key is an external PSK in
 * mode psk_dhe_ke with TLS_AES_128_GCM_SHA256, so a key that becomes known later does not decrypt
 * recorded connections.  There are no certificates: an end without the key gets no connection.  No
 * other file calls OpenSSL for TLS.
 *
 * secure_channel_read() and secure_channel_write() behave like recv() and sendmsg() with
 * MSG_DONTWAIT, whether or not the socket blocks, with two differences.  First, a read takes more
 * from the socket than it returns (at least a record), so before the caller waits for the socket it
 * asks secure_channel_has_more().  Second, a write that takes only a part of its bytes, or fails
 * with EAGAIN, may have encrypted one more byte, which waits for the socket.  The caller's next
 * write must begin with that byte.  So a caller that has written all its bytes need not flush.
 *
 * A channel may be used by one thread at a time.  It ends without TLS's close_notify, since the
 * protocols inside it announce their own end. */
#ifndef RUNTIME_NET_SECURE_CHANNEL_H
#define RUNTIME_NET_SECURE_CHANNEL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "runtime/util/error.h"

#define CHANNEL_KEY_BYTES 32
#define CHANNEL_FIRST 0x16u /* the first byte that a client sends */

struct secure_context;
struct secure_channel;

/* purpose: up to 31 characters, the same at both ends.  Returns
 * CT_ERR_UNSUPPORTED without libssl. */
ct_status secure_context_create(const unsigned char key[CHANNEL_KEY_BYTES], const char *purpose,
                                struct secure_context **context);
/* Releases the context; its channels can still be used.  NULL is fine. */
void secure_context_destroy(struct secure_context *context);

/* For tests: a new key is derived after so many records. */
void secure_context_new_key_after(struct secure_context *context, uint64_t records);

enum channel_side { CHANNEL_CLIENT, CHANNEL_SERVER };

/* Creates a channel on a socket.  The caller keeps the socket, and closes it after the channel.
 * Returns NULL if memory runs out. */
struct secure_channel *secure_channel_create(struct secure_context *context, int fd,
                                             enum channel_side side);
void secure_channel_destroy(struct secure_channel *channel); /* NULL is fine */

/* Does one step of the handshake without waiting.  CHANNEL_WAITS means that the caller should wait
 * until the socket is readable.  After CHANNEL_FAILED, secure_channel_why() says what the other end
 * did, as a predicate ("has another secret ..."), and secure_channel_status() returns
 * CT_ERR_INVALID if a retry would be in vain, else CT_ERR_PEER. */
enum channel_step { CHANNEL_WAITS, CHANNEL_OPEN, CHANNEL_FAILED };
enum channel_step secure_channel_handshake(struct secure_channel *channel);
const char *secure_channel_why(const struct secure_channel *channel);
ct_status secure_channel_status(const struct secure_channel *channel);

/* Does a client's whole handshake and lets the channel read ahead.  other_end: the name of the
 * other end, with which the error message begins. */
ct_status secure_channel_connect(struct secure_context *context, int fd, const char *other_end,
                                 int64_t deadline, struct secure_channel **channel);

/* Lets each later read take all that the socket has, up to 64 KiB.  Without this a read takes one
 * record, so the bytes behind that record stay in the socket. */
void secure_channel_read_ahead(struct secure_channel *channel);
ssize_t secure_channel_read(struct secure_channel *channel, void *data, size_t bytes);
/* Reads only bytes that were read ahead. */
ssize_t secure_channel_read_rest(struct secure_channel *channel, void *data, size_t bytes);
ssize_t secure_channel_write(struct secure_channel *channel, const struct iovec *parts, int count);
/* Returns 1 if a read would return bytes, the end or an error, though the socket may
 * not be readable. */
int secure_channel_has_more(struct secure_channel *channel);
/* Returns 1 if the last read emptied the socket and there is nothing more to decrypt. */
int secure_channel_is_dry(const struct secure_channel *channel);

/* Read or write all bytes, or fail, like socket_read_all() and socket_write_all().  Without a
 * channel (NULL) they call these functions on fd. */
ct_status secure_read_all(struct secure_channel *channel, int fd, void *data, size_t bytes,
                          int64_t deadline);
ct_status secure_write_all(struct secure_channel *channel, int fd, const void *data, size_t bytes,
                           int64_t deadline);

/* The bytes that a server without encryption sends to a client that encrypts, before it closes
 * the connection.  They are TLS's alert insufficient_security, from which the client knows
 * what is wrong. */
#define CHANNEL_REFUSAL_BYTES 7
extern const unsigned char secure_channel_refusal[CHANNEL_REFUSAL_BYTES];

#endif
