/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_peer_info.c - the peer infos by which ranks find each other, as any program may have changed
 * them at the store.
 *
 * The first byte says which of three ranks we are.  Each other rank's info is a copy of ours,
 * changed by the pieces that follow: a byte for the rank, two for the offset, one for the number of
 * bytes, then those.  No call waits: the deadline has passed when it begins. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bootstrap/own_address.h"
#include "runtime/bootstrap/store_all_gather.h"
#include "runtime/transport/mesh.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "tests/fuzz/input.h"

enum { RANKS = 3 };

static const uint8_t *input;
static size_t left;

/* Instead of runtime/bootstrap/store_all_gather.c: the store. */
ct_status store_all_gather(ct_store *store, const char *what, int rank, int size, const void *own,
                           size_t bytes, void *all, int64_t deadline)
{
    unsigned char *infos = all;

    (void)store;
    (void)what;
    (void)deadline;
    for (int i = 0; i < size; i++)
        memcpy(infos + (size_t)i * bytes, own, bytes);
    while (left >= 4) {
        const int whose = input[0] % RANKS;
        const size_t at = (input[1] | (size_t)input[2] << 8) % bytes;
        size_t n = input[3];

        input += 4;
        left -= 4;
        n = n < left ? n : left;
        n = n < bytes - at ? n : bytes - at;
        if (whose != rank)
            memcpy(infos + (size_t)whose * bytes + at, input, n);
        input += n;
        left -= n;
    }
    return CT_OK;
}

/* Instead of runtime/bootstrap/own_address.c: no rank gets to open a port. */
ct_status own_address(ct_store *store, int one_host, char *address, size_t size)
{
    (void)store;
    (void)one_host;
    (void)address;
    (void)size;
    return ct_fail(CT_ERR_UNSUPPORTED, "there is no network");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ct_store *store;
    struct mesh *mesh = NULL;
    ct_status status;

    if (size == 0)
        return -1;
    log_setup("fuzz", LOG_NONE);
    input = data + 1;
    left = size - 1;
    holds(ct_store_hash(&store) == CT_OK); /* used only to check for deaths */
    status = mesh_create(store, data[0] % RANKS, RANKS, clock_ms(), &mesh);
    holds(status == CT_OK || ct_last_error()[0]);
    if (status == CT_OK)
        mesh_destroy(mesh);
    ct_store_close(store);
    return 0;
}
