/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - the store itself: bytes of a client in, replies out.  No sockets.
 *
 * It speaks PyTorch's TCPStore protocol (docs/protocol.md).  No call takes long: a request with
 * many keys, or a key that many sessions wait for, takes several turns of about 100 us, between
 * which the server serves its other clients. */
#ifndef RUNTIME_STORE_ENGINE_ENGINE_H
#define RUNTIME_STORE_ENGINE_ENGINE_H

#include <stddef.h>

#include "runtime/store/engine/value.h"

struct engine;
struct session;

/* Called with a session's owner, possibly during the turn of another session (a released wait).
 * 1: no more replies for now; 0: go on. */
struct reply_hooks {
    int (*reply)(void *owner, const void *data, size_t bytes);
    int (*reply_value)(void *owner, struct value *value); /* adds its own hold */
};

/* memory: bytes of keys, values and requests in all; request: of one request. */
struct engine *engine_create(const struct reply_hooks *hooks, size_t memory, size_t request);
void engine_destroy(struct engine *engine);
void engine_clear(struct engine *engine); /* deletes every key; waits go on */
int engine_has(const struct engine *engine, const char *wire_key);
struct budget *engine_budget(struct engine *engine); /* for what the server keeps for clients */

struct session *session_create(struct engine *engine, void *owner); /* NULL: no memory */
/* The client has left; a MULTI_SET that it sent whole is run to its end.  NULL is fine. */
void session_destroy(struct session *session);
void session_abort(struct session *session); /* also drops an unfinished request */

/* BUSY: the request continues when session_feed() is called again, with the bytes that were not
 * used (or none).  BROKEN: the client broke the protocol and must be closed; *why says how. */
enum session_state { SESSION_READY, SESSION_BUSY, SESSION_BROKEN };

/* Takes bytes, which may be cut anywhere. */
enum session_state session_feed(struct session *session, const void *data, size_t bytes,
                                size_t *used, const char **why);
int session_is_valid(const struct session *session); /* it has sent the magic */

/* Works for one turn for sessions that waited or whose client left.  1: there is more work. */
int engine_work(struct engine *engine);

#endif
