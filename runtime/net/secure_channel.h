/* SPDX-License-Identifier: Apache-2.0 */
/* secure_channel.h - TLS 1.3 on a connected socket, with a key that both ends have.
 *
 * A context is a key and what it is for; a channel is one connection.  The key is an external PSK
 * in mode psk_dhe_ke with TLS_AES_128_GCM_SHA256, so a key that becomes known later does not open
 * what was recorded.  There are no certificates: an end that does not have the key gets no
 * connection.  No other file calls OpenSSL.
 *
 * secure_channel_read() and _write() behave as recv() and sendmsg() with MSG_DONTWAIT do, whether
 * the socket blocks or not, with two differences.  A read takes more from the socket than it
 * returns (at least a record), so before the caller waits for the socket it asks
 * secure_channel_has_more().  And a
 * write that returns fewer bytes than it was given, or EAGAIN, may have encrypted one byte more,
 * which waits for the socket: the caller's next write begins with that byte.  So a caller that has
 * written all its bytes owes no flush.
 *
 * A channel belongs to one thread at a time.  It ends without TLS's close_notify, since the
 * protocols inside say themselves when they end. */
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

/* purpose: up to 31 characters, the same at both ends.  CT_ERR_UNSUPPORTED: no libssl. */
ct_status secure_context_create(const unsigned char key[CHANNEL_KEY_BYTES], const char *purpose,
                                struct secure_context **context);
/* Its channels keep what they need.  NULL is fine. */
void secure_context_destroy(struct secure_context *context);

/* For tests: a new key is derived after so many records. */
void secure_context_new_key_after(struct secure_context *context, uint64_t records);

enum channel_side { CHANNEL_CLIENT, CHANNEL_SERVER };

/* The caller keeps the socket, and closes it after the channel.  NULL: no memory. */
struct secure_channel *secure_channel_create(struct secure_context *context, int fd,
                                             enum channel_side side);
void secure_channel_destroy(struct secure_channel *channel); /* NULL is fine */

/* One step, which never waits: WAITS until the socket is readable.  After FAILED
 * secure_channel_why() says what the other end did, as a predicate: "has another secret ...", and
 * secure_channel_status() is CT_ERR_INVALID where trying again is in vain, else CT_ERR_PEER. */
enum channel_step { CHANNEL_WAITS, CHANNEL_OPEN, CHANNEL_FAILED };
enum channel_step secure_channel_handshake(struct secure_channel *channel);
const char *secure_channel_why(const struct secure_channel *channel);
ct_status secure_channel_status(const struct secure_channel *channel);

/* A client's whole handshake; the channel reads ahead.  other_end: its name, with which
 * the sentence of a failure begins. */
ct_status secure_channel_connect(struct secure_context *context, int fd, const char *other_end,
                                 int64_t deadline, struct secure_channel **channel);

/* From now on a read takes all that the socket has, up to 64 KiB.  Before, it takes one record:
 * what the other end writes by itself stays in the socket. */
void secure_channel_read_ahead(struct secure_channel *channel);
ssize_t secure_channel_read(struct secure_channel *channel, void *data, size_t bytes);
/* Reads only what was read ahead. */
ssize_t secure_channel_read_rest(struct secure_channel *channel, void *data, size_t bytes);
ssize_t secure_channel_write(struct secure_channel *channel, const struct iovec *parts, int count);
/* 1: a read returns something, be it the end, though the socket may not be readable. */
int secure_channel_has_more(struct secure_channel *channel);
/* 1: the last read emptied the socket, and there is nothing more to decrypt. */
int secure_channel_is_dry(const struct secure_channel *channel);

/* All bytes or a failure, as socket_read_all() and socket_write_all(); channel NULL: these. */
ct_status secure_read_all(struct secure_channel *channel, int fd, void *data, size_t bytes,
                          int64_t deadline);
ct_status secure_write_all(struct secure_channel *channel, int fd, const void *data, size_t bytes,
                           int64_t deadline);

/* What a server that does not encrypt answers to a client that does, before it closes the
 * connection: TLS's alert insufficient_security, by which that client knows what is wrong. */
#define CHANNEL_REFUSAL_BYTES 7
extern const unsigned char secure_channel_refusal[CHANNEL_REFUSAL_BYTES];

#endif
