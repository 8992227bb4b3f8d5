/* SPDX-License-Identifier: Apache-2.0 */
/* key_list.c - memory that is given out to callers of ct_store_*. */
#include "runtime/store/key_list.h"

#include <stdlib.h>
#include <string.h>

void key_list_add(struct key_list *list, struct bytes key)
{
    if (list->size + key.size + 1 > list->room) {
        const size_t room = 2 * (list->size + key.size) + 256;
        char *text = realloc(list->text, room);

        if (!text) {
            list->failed = 1;
            return;
        }
        list->text = text;
        list->room = room;
    }
    memcpy(list->text + list->size, key.data, key.size);
    list->text[list->size + key.size] = 0;
    list->size += key.size + 1;
    list->count++;
}

ct_status key_list_finish(struct key_list *list, ct_status status, char ***keys, int *count)
{
    const size_t pointers = ((size_t)list->count + 1) * sizeof **keys;
    char **block = status == CT_OK && !list->failed ? malloc(pointers + list->size) : NULL;
    char *text;

    if (status == CT_OK && !block)
        status = ct_fail(CT_ERR_NOMEM, "no memory for %d keys", list->count);
    if (status == CT_OK) {
        text = (char *)block + pointers;
        if (list->size > 0)
            memcpy(text, list->text, list->size);
        for (int i = 0; i < list->count; i++) {
            block[i] = text;
            text += strlen(text) + 1;
        }
        block[list->count] = NULL;
        *keys = block;
        *count = list->count;
    }
    free(list->text);
    return status;
}

ct_status value_copy(struct bytes from, void **value, size_t *bytes)
{
    char *copy = malloc(from.size + 1);

    if (!copy)
        return ct_fail(CT_ERR_NOMEM, "no memory for a value of %zu bytes", from.size);
    if (from.size > 0)
        memcpy(copy, from.data, from.size);
    copy[from.size] = 0;
    *value = copy;
    *bytes = from.size;
    return CT_OK;
}
