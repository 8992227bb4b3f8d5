/* SPDX-License-Identifier: Apache-2.0 */
/* round_keys.h - the keys of one round in the rendezvous' store: what nodes tell each other there,
 * beside the state. */
#ifndef LAUNCHER_NODES_C10D_ROUND_KEYS_H
#define LAUNCHER_NODES_C10D_ROUND_KEYS_H

#include "launcher/nodes/c10d/session.h"

/* One key of a round: "MASTER_ADDR" is ".../torch.rendezvous.<id>.<round>/MASTER_ADDR". */
void c10d_key(const struct c10d_session *session, int64_t round, const char *name, char *key,
              size_t size);
/* A value of a round; NULL: it is not there (or the store is not).  The caller's. */
char *c10d_peek(struct c10d_session *session, int64_t round, const char *name);

/* A value of the round that the state is in. */
enum c10d_end c10d_publish(struct c10d_session *session, const char *name, const char *value);
/* Until all keys are there, while we stay alive and the round stands; timeout: microseconds.
 * whose: who should have set them. */
enum c10d_end c10d_wait_for(struct c10d_session *session, const char *const *keys, int count,
                            const char *whose, int64_t timeout);

/* C10D_LOST, with the sentence. */
enum c10d_end c10d_store_lost(struct c10d_session *session);

#endif
