/* SPDX-License-Identifier: Apache-2.0 */
/* pmi_space.c - stores keys and values in the store's hash map.  The map has no size limit, since
 * pmi_protocol.c limits the puts of each rank. */
#include "launcher/pmi/pmi_space.h"

#include <stdlib.h>
#include <string.h>

int pmi_space_open(struct pmi_space *space, int is_shared)
{
    *space = (struct pmi_space){ .budget.limit = SIZE_MAX, .is_shared = is_shared };
    return map_init(&space->map, &space->budget);
}

void pmi_space_close(struct pmi_space *space)
{
    map_done(&space->map);
    while (budget_sweep(&space->budget))
        continue;
    free(space->fresh.data);
    *space = (struct pmi_space){ .is_shared = 0 };
}

static int set(struct pmi_space *space, struct bytes key, struct bytes value)
{
    struct entry *entry = map_get(&space->map, key);

    return entry
               ? entry_set(&space->map, entry, value_create(&space->budget, value.data, value.size))
               : -1;
}

int pmi_space_put(struct pmi_space *space, struct bytes key, struct bytes value)
{
    const size_t before = space->fresh.used;

    if (set(space, key, value) < 0)
        return -1;
    if (!space->is_shared)
        return 0;
    text_add(&space->fresh, key.data, key.size);
    text_add(&space->fresh, " ", 1);
    text_add(&space->fresh, value.data, value.size);
    text_add(&space->fresh, "\n", 1);
    if (space->fresh.used == before + key.size + value.size + 2)
        return 0;
    space->fresh.used = before; /* removes the incomplete text, since memory is exhausted */
    return -1;
}

struct bytes pmi_space_get(const struct pmi_space *space, struct bytes key)
{
    return entry_value(map_find(&space->map, key));
}

void pmi_space_remove(struct pmi_space *space, struct bytes key)
{
    struct entry *entry = map_find(&space->map, key);

    if (!entry)
        return;
    entry_delete(&space->map, entry);
    map_drop_if_idle(&space->map, entry);
}

int pmi_space_merge(struct pmi_space *space, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const char *end = memchr(text, '\n', bytes);
        const char *gap = end ? memchr(text, ' ', (size_t)(end - text)) : NULL;
        struct bytes key, value;

        if (!gap)
            return -1;
        key = (struct bytes){ text, (size_t)(gap - text) };
        value = (struct bytes){ gap + 1, (size_t)(end - gap) - 1 };
        if (key.size == 0 || key.size >= PMI_KEY_MOST || value.size >= PMI_VALUE_MOST
            || set(space, key, value) < 0)
            return -1;
        bytes -= (size_t)(end + 1 - text);
        text = end + 1;
    }
    return 0;
}
