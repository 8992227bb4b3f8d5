/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c - a C rank for whom PyTorch's TCPStore(world_size=N, wait_for_workers=True) waits.
 *
 *     workers HOST PORT N */
#include <ct.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    ct_store *store;

    if (argc != 4) {
        fprintf(stderr, "usage: workers HOST PORT N\n");
        return 2;
    }
    if (ct_store_tcp(argv[1], atoi(argv[2]), 0, 60000, &store) != CT_OK
        || ct_store_set(store, "c", "is here", 7) != CT_OK
        || ct_store_wait_workers(store, atoi(argv[3])) != CT_OK || ct_store_close(store) != CT_OK) {
        fprintf(stderr, "workers: %s\n", ct_last_error());
        return 1;
    }
    return 0;
}
