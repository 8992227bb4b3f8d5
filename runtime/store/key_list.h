/* SPDX-License-Identifier: Apache-2.0 */
/* key_list.h - the answer of ct_store_list_keys: pointers and strings in one block. */
#ifndef RUNTIME_STORE_KEY_LIST_H
#define RUNTIME_STORE_KEY_LIST_H

#include "runtime/store/store.h"

/* Zeroed is empty. */
struct key_list {
    char *text; /* keys, each with a 0 behind */
    size_t size, room;
    int count;
    int failed;
};

void key_list_add(struct key_list *list, struct bytes key);
/* Frees the list; gives status back, or CT_ERR_NOMEM. */
ct_status key_list_finish(struct key_list *list, ct_status status, char ***keys, int *count);

/* Bytes as a value to give out: malloc'ed, a 0 behind. */
ct_status value_copy(struct bytes from, void **value, size_t *bytes);

#endif
