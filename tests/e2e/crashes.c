/* SPDX-License-Identifier: Apache-2.0 */
/* crashes - rank N-1 aborts while the others wait for it; all have memory of ct_mem_alloc(). */
#include <ct.h>
#include <stdlib.h>

int main(void)
{
    void *memory;

    if (ct_init_process_group(NULL) != CT_OK || ct_mem_alloc(NULL, 4 << 20, &memory) != CT_OK
        || ct_barrier(NULL, NULL) != CT_OK)
        return 2;
    if (ct_rank(NULL) == ct_size(NULL) - 1)
        abort();
    return ct_barrier(NULL, NULL) == CT_OK ? 0 : 3;
}
