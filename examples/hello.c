/* SPDX-License-Identifier: Apache-2.0 */
/* hello.c - the README's program: each rank prints its number and the sum over all ranks. */
#include <ct.h>
#include <stdio.h>

int main(void)
{
    int x;

    if (ct_init_process_group(NULL) != CT_OK) {
        fprintf(stderr, "%s\n", ct_last_error());
        return 1;
    }
    x = ct_rank(CT_WORLD) + 1;
    if (ct_all_reduce(CT_WORLD, &x, &x, 1, CT_I32, CT_SUM, NULL) != CT_OK) {
        fprintf(stderr, "%s\n", ct_last_error());
        return 1;
    }
    printf("rank %d of %d: the sum is %d\n", ct_rank(CT_WORLD), ct_size(CT_WORLD), x);
    return ct_destroy_process_group(CT_WORLD) != CT_OK;
}
