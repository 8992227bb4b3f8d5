/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_peer_info.c - the infos of ranks and hosts by which ranks find each other, as any program
 * may have changed them at the store.
 *
 * The first byte says which of three ranks we are.  Each other rank leads a host of its own.  What
 * it and its host have published is like ours, changed by the pieces that follow: a byte for the
 * rank, two for the offset, one for the number of bytes, then those.  No call waits: the deadline
 * has passed when it begins. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bootstrap/own_address.h"
#include "runtime/bootstrap/peer_info.h"
#include "runtime/bootstrap/store_all_gather.h"
#include "runtime/transport/mesh.h"
#include "runtime/util/clock.h"
#include "runtime/util/log.h"
#include "tests/fuzz/input.h"

enum { RANKS = 3 };

/* What the other ranks have published. */
static void fill(struct leader_info *all, const uint8_t *input, size_t left)
{
    struct mesh mesh = { .size = RANKS };

    holds(control_open(&mesh.control, 0) == CT_OK);
    for (int i = 0; i < RANKS; i++) {
        peer_info_fill(&all[i].peer, &mesh, i);
        holds(host_info_fill(&all[i].host, i) == CT_OK);
    }
    control_close(&mesh.control);
    while (left >= 4) {
        const int whose = input[0] % RANKS;
        const size_t at = (input[1] | (size_t)input[2] << 8) % sizeof *all;
        size_t n = input[3];

        input += 4;
        left -= 4;
        n = n < left ? n : left;
        n = n < sizeof *all - at ? n : sizeof *all - at;
        memcpy((char *)&all[whose] + at, input, n);
        input += n;
        left -= n;
    }
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
    struct leader_info all[RANKS];
    ct_store *store;
    struct mesh *mesh = NULL;
    ct_status status;

    if (size == 0)
        return -1;
    log_setup("fuzz", LOG_NONE);
    fill(all, data + 1, size - 1);
    holds(ct_store_hash(&store) == CT_OK);
    for (int i = 0; i < RANKS; i++)
        if (i != data[0] % RANKS)
            holds(store_all_gather_give(store, "card", i, RANKS, clock_ms(), &all[i], sizeof all[i])
                  == CT_OK);
    status = mesh_create(store, data[0] % RANKS, RANKS, clock_ms(), &mesh);
    holds(status == CT_OK || ct_last_error()[0]);
    if (status == CT_OK)
        mesh_destroy(mesh);
    ct_store_close(store);
    return 0;
}
