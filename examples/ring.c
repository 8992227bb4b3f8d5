/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - a token goes round the ranks by send and recv; each rank adds its number. */
#include <ct.h>
#include <stdio.h>

static int go_round(int rank, int size)
{
    int token = 0;

    if (size == 1)
        return 0;
    if (rank > 0 && ct_recv(CT_WORLD, &token, 1, CT_I32, rank - 1, 0, NULL) != CT_OK)
        return -1;
    token += rank;
    if (ct_send(CT_WORLD, &token, 1, CT_I32, (rank + 1) % size, 0) != CT_OK)
        return -1;
    if (rank == 0 && ct_recv(CT_WORLD, &token, 1, CT_I32, size - 1, 0, NULL) != CT_OK)
        return -1;
    return token;
}

int main(void)
{
    int rank, size, token;

    if (ct_init_process_group(NULL) != CT_OK) {
        fprintf(stderr, "ring: %s\n", ct_last_error());
        return 1;
    }
    rank = ct_rank(CT_WORLD);
    size = ct_size(CT_WORLD);
    token = go_round(rank, size);
    if (token < 0) {
        fprintf(stderr, "ring: rank %d: %s\n", rank, ct_last_error());
        return 1;
    }
    if (rank == 0)
        printf("the token came back with %d; the ranks add up to %d\n", token,
               size * (size - 1) / 2);
    return ct_destroy_process_group(CT_WORLD) != CT_OK;
}
