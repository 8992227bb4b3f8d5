/* SPDX-License-Identifier: Apache-2.0 */
/* store_handle.c - stores upon stores, and who holds them.
 *
 * ct_store_prefix() makes no kind of its own: it is a name in front of every key, which
 * key_prefix.c puts there, and the store at the bottom does the work.  It holds the store that it
 * is upon; the last one to close a store ends it.  What concerns a connection to a server is passed
 * to the bottom, which may have one. */
#include "runtime/store/store.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/store/tcp_wire.h"
#include "runtime/util/forks.h"

ct_store *store_bottom(ct_store *store)
{
    while (store->base)
        store = store->base;
    return store;
}

ct_status store_check_process(const ct_store *store, const char *call)
{
    if (store->maker == this_process)
        return CT_OK;
    forks_refuse("the store", store->maker);
    return ct_fail_in(CT_ERR_INVALID, "ct_store_%s: ", call);
}

ct_status ct_store_prefix(ct_store *base, const char *prefix, ct_store **store)
{
    ct_store *s;
    size_t length;
    ct_status status;

    if (!base || !prefix || !store)
        return ct_fail(CT_ERR_INVALID, "ct_store_prefix: the base, the prefix or the place for the "
                                       "store is NULL");
    status = store_check_process(base, "prefix");
    if (status != CT_OK)
        return status;
    length = strlen(prefix);
    s = calloc(1, sizeof *s);
    if (!s || !(s->prefix = malloc(length + 1))) {
        free(s);
        return ct_fail(CT_ERR_NOMEM, "no memory for a store");
    }
    s->maker = this_process;
    s->base = store_hold(base);
    s->timeout_ms = base->timeout_ms;
    memcpy(s->prefix, prefix, length);
    s->prefix[length] = '/';
    s->prefix_size = length + 1;
    *store = s;
    return CT_OK;
}

ct_store *store_hold(ct_store *store)
{
    atomic_fetch_add(&store->others, 1);
    return store;
}

ct_status ct_store_close(ct_store *store)
{
    const ct_status status = store ? store_check_process(store, "close") : CT_OK;

    if (!store || status != CT_OK || atomic_fetch_sub(&store->others, 1) > 0)
        return status;
    if (store->base) {
        ct_store *base = store->base;

        free(store->prefix);
        free(store);
        ct_store_close(base);
    } else {
        store->ops->close(store);
    }
    return CT_OK;
}

void store_tells(ct_store *store, struct control *control, uint32_t known, int any)
{
    store_client_tells(store_bottom(store), control, known, any);
}

void store_knows(ct_store *store, uint32_t known)
{
    store_client_knows(store_bottom(store), known);
}

ct_status store_look(ct_store *store)
{
    return store_client_look(store_bottom(store));
}

int store_client_fd(ct_store *store)
{
    return store_client_socket(store_bottom(store));
}
