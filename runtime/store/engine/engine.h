/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - the store without sockets.  A session takes the bytes of a client and gives its
 * replies to hooks.
 *
 * The engine speaks PyTorch's TCPStore protocol (docs/protocol.md).  No call takes long.  A request
 * with many keys, or a key that many sessions wait for, is handled in several turns of about 100
 * us.  The server serves other clients between the turns. */
#ifndef RUNTIME_STORE_ENGINE_ENGINE_H
#define RUNTIME_STORE_ENGINE_ENGINE_H

#include <stddef.h>

#include "runtime/store/engine/value.h"

struct engine;
struct session;

/* The engine calls these with a session's owner to send a reply.  The end of a wait is replied
 * during the turn of another session.  A hook returns 1 if the session must pause, and 0 if the
 * session may continue. */
struct reply_hooks {
    int (*reply)(void *owner, const void *data, size_t bytes);
    int (*reply_value)(void *owner, struct value *value); /* calls value_hold() if it keeps value */
};

/* Returns NULL if out of memory.  memory is the most bytes of all keys, values and requests
 * together.  request is the most bytes of a request. */
struct engine *engine_create(const struct reply_hooks *hooks, size_t memory, size_t request);
void engine_destroy(struct engine *engine);
void engine_clear(struct engine *engine); /* deletes every key, but does not end waits */
int engine_has(const struct engine *engine, const char *wire_key);
/* Returns the budget, from which the server also takes the memory that it uses for clients. */
struct budget *engine_budget(struct engine *engine);

struct session *session_create(struct engine *engine, void *owner); /* NULL if out of memory */
/* Ends a session when its client has left.  If the client sent a complete MULTI_SET, runs that
 * request to its end.  session may be NULL. */
void session_destroy(struct session *session);
/* Ends a session without finishing its request.  session may be NULL. */
void session_abort(struct session *session);

/* SESSION_BUSY means that session_feed() must be called again to continue the request, with the
 * bytes that were not used, if any.  SESSION_BROKEN means that the client broke the protocol and
 * must be closed, and *why says how. */
enum session_state { SESSION_READY, SESSION_BUSY, SESSION_BROKEN };

/* Takes bytes from the client, in pieces of any size.  Sets *used to the number of bytes taken. */
enum session_state session_feed(struct session *session, const void *data, size_t bytes,
                                size_t *used, const char **why);
int session_is_valid(const struct session *session); /* 1 if the client has sent the magic number */

/* Takes a turn of work that no client's bytes cause.  Replies to sessions whose waits ended, frees
 * sessions whose client left, and returns freed memory to the kernel.  Returns 1 if more work is
 * left. */
int engine_work(struct engine *engine);

#endif
