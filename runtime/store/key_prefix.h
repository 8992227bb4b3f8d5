/* SPDX-License-Identifier: Apache-2.0 */
/* key_prefix.h - the keys of a call as the store at the bottom knows them: under every prefix on
 * the way.  For the public calls, whose checks and names are in the sentences. */
#ifndef RUNTIME_STORE_KEY_PREFIX_H
#define RUNTIME_STORE_KEY_PREFIX_H

#include "runtime/store/store.h"

struct full_key {
    ct_store *bottom;
    struct bytes key;
    char *memory; /* NULL: small was enough */
    char small[256];
};

/* Checks what every call with one key checks.  CT_OK is owed a key_end(). */
ct_status key_begin(struct full_key *full, ct_store *store, const char *key, const char *call);
ct_status key_end(struct full_key *full, ct_status status); /* gives the status back */

/* Many keys in one block, free()d by the caller: the array, then their text.  NULL with the
 * sentence set. */
struct bytes *keys_begin(const ct_store *store, const char *const *keys, int count,
                         const char *call);

#endif
